/**
 * The page's script, part 4 of 9: curves as SVG lines, each with its values in words. A line is a
 * list of { atS, value }; its colour and dashes come from the style, by its place in the chart.
 */
export const PAGE_CHARTS_SCRIPT: string = `
const CURVE_WIDTH = 600;
const CURVE_HEIGHT = 200;
const CURVE_MARGIN = 5;

function makeSvg(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function makeCurve() {
  return makeSvg('svg', {
    class: 'curve', role: 'img', preserveAspectRatio: 'none',
    viewBox: '0 0 ' + CURVE_WIDTH + ' ' + CURVE_HEIGHT,
  });
}

function makeLine(place) {
  return makeSvg('polyline', { class: 'line-' + place });
}

/** Draws lines on one scale that begins at 0; returns where it ends. */
function drawCurve(curve, lines, history, label) {
  const { nowS, spanS } = history;
  let highest = 0;
  for (const line of lines) for (const { value } of line) if (value > highest) highest = value;
  const top = roundedUp(highest);
  while (curve.children.length < lines.length) curve.append(makeLine(curve.children.length + 1));
  lines.forEach((line, index) => {
    const points = line.map(({ atS, value }) => {
      const x = CURVE_WIDTH * (1 - (nowS - atS) / spanS);
      const y = CURVE_HEIGHT - CURVE_MARGIN - (value / top) * (CURVE_HEIGHT - 2 * CURVE_MARGIN);
      return Math.round(x) + ',' + Math.round(y);
    });
    setAttribute(curve.children[index], 'points', points.join(' '));
  });
  setAttribute(curve, 'aria-label', label);
  return top;
}

function rangeText(line, format) {
  if (line.length === 0) return 'no values yet';
  const values = line.map(({ value }) => value);
  return 'now ' + format(values.at(-1)) + ', lowest ' + format(Math.min(...values)) +
    ', highest ' + format(Math.max(...values));
}

function drawSparkline(curve, title, line, format, history) {
  const span = 'over the last ' + durationText(history.spanS);
  drawCurve(curve, [line], history, title + ' ' + span + ': ' + rangeText(line, format));
}

function makeChart(title) {
  const plot = make('div', 'plot', make('span', 'highest'), make('span', 'lowest'), makeCurve());
  const axis = make('p', 'axis', make('span'), make('span'));
  return make('figure', 'chart',
    make('figcaption', '', make('h4', '', title), make('ul', 'legend')), plot, axis);
}

/** series: [name, line, text of its value now]. */
function drawChart(chart, series, format, history) {
  const [caption, plot, axis] = chart.children;
  const [title, legend] = caption.children;
  const [top, bottom, curve] = plot.children;
  const span = durationText(history.spanS);
  const words = series.map(([name, line]) => name + ': ' + rangeText(line, format));
  const label = title.textContent + ' over the last ' + span + '. ' + words.join('. ');
  const highest = drawCurve(curve, series.map(([, line]) => line), history, label);
  setText(top, format(highest));
  setText(bottom, '0');
  setText(axis.children[0], span + ' ago');
  setText(axis.children[1], 'now');
  while (legend.children.length < series.length) {
    legend.append(makeLegendEntry(legend.children.length + 1));
  }
  series.forEach(([name, , now], index) => {
    const [, nameText, value] = legend.children[index].children;
    setText(nameText, name);
    setText(value, now);
  });
}

function makeLegendEntry(place) {
  const swatch = makeSvg('svg', { viewBox: '0 0 20 4', 'aria-hidden': 'true' });
  const line = makeLine(place);
  line.setAttribute('points', '0,2 20,2');
  swatch.append(line);
  return make('li', '', swatch, make('span'), make('b'));
}
`;
