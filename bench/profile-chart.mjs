/**
 * Where the time of an event goes, as SVG: for each stream, CPU time an event of kvrelay, by stage, of Dynamo's publisher and
 * of the floor.
 *
 *   node bench/profile-chart.mjs [--from .cache/bench.json] [--out docs/performance-profile.svg]
 *
 * Stages   are those in process, of `inProcess`; what the process takes beyond them end to end, of `endToEnd`, is sockets,
 *          their clients, the compiler and the collector. Medians of the runs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { median } from './report.mjs';

const WIDTH = 860;
const LABEL_WIDTH = 150;
const VALUE_WIDTH = 90;
const BAR_HEIGHT = 26;
const BAR_GAP = 8;
const STREAM_GAP = 34;
const LEGEND_HEIGHT = 26;
/** A narrower part has no figure in it. */
const MIN_TEXT_WIDTH = 34;

const STAGE_COLOURS = ['#264653', '#2a788e', '#43a08d', '#8ab17d', '#e9c46a'];
const REST = { name: 'sockets, clients, compiler, collector', colour: '#c9ced6' };
const OTHER_COLOURS = { dynamo: '#9a6fb0', floor: '#6b7280' };
const DARK = new Set(['#264653', '#2a788e', '#9a6fb0', '#6b7280']);

/** `{stream, bars}`; a bar is `{label, parts}`, a part `{name, ns, colour}`. */
function chartOf({ inProcess, endToEnd }) {
  return endToEnd.flatMap(({ stream: { name }, runs }) => {
    const stages = inProcess.find(({ stream }) => stream === name)?.stageNsPerEvent;
    if (stages === undefined) return [];
    const cpuOf = (relay) => {
      const own = runs.filter((run) => run.relay === relay);
      return own.length === 0 ? null : median(own.map((run) => run.cpuNsPerEvent));
    };
    const parts = Object.entries(stages).map(([stage, ns], at) => {
      return { name: stage, ns, colour: STAGE_COLOURS[at % STAGE_COLOURS.length] };
    });
    const inStages = parts.reduce((sum, { ns }) => sum + ns, 0);
    parts.push({ ...REST, ns: Math.max(0, cpuOf('kvrelay') - inStages) });
    const others = Object.entries(OTHER_COLOURS).flatMap(([relay, colour]) => {
      const ns = cpuOf(relay);
      return ns === null ? [] : [{ label: relay, parts: [{ name: relay, ns, colour }] }];
    });
    return [{ stream: name, bars: [{ label: 'kvrelay', parts }, ...others] }];
  });
}

function totalNs({ parts }) {
  return parts.reduce((sum, { ns }) => sum + ns, 0);
}

function text(x, y, content, { fill = '#1f2933', anchor = 'start', weight = 'normal' } = {}) {
  return `<text x="${x}" y="${y}" fill="${fill}" text-anchor="${anchor}" font-weight="${weight}">${content}</text>`;
}

function barOf(bar, y, nsToPixels) {
  const middle = y + BAR_HEIGHT / 2 + 4;
  const drawn = [text(LABEL_WIDTH - 10, middle, bar.label, { anchor: 'end' })];
  let x = LABEL_WIDTH;
  for (const { name, ns, colour } of bar.parts) {
    const width = ns * nsToPixels;
    const [left, wide] = [x, width].map((value) => value.toFixed(1));
    drawn.push(
      `<rect x="${left}" y="${y}" width="${wide}" height="${BAR_HEIGHT}" fill="${colour}"><title>${name}: ${Math.round(ns)} ns</title></rect>`,
    );
    if (width >= MIN_TEXT_WIDTH) {
      const fill = DARK.has(colour) ? '#ffffff' : '#1f2933';
      const at = (x + width / 2).toFixed(1);
      drawn.push(text(at, middle, Math.round(ns), { fill, anchor: 'middle' }));
    }
    x += width;
  }
  drawn.push(
    text((x + 8).toFixed(1), middle, `${Math.round(totalNs(bar))} ns`, { weight: 'bold' }),
  );
  return drawn;
}

function legendOf(parts, y) {
  let x = 16;
  return parts.flatMap(({ name, colour }) => {
    const at = x;
    x += 30 + name.length * 6.6;
    return [
      `<rect x="${at.toFixed(1)}" y="${y - 10}" width="12" height="12" fill="${colour}"/>`,
      text((at + 17).toFixed(1), y, name),
    ];
  });
}

function svgOf(chart) {
  const most = Math.max(...chart.flatMap(({ bars }) => bars.map(totalNs)));
  const nsToPixels = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most;
  const drawn = [text(16, 26, 'CPU time an event, nanoseconds', { weight: 'bold' })];
  let y = 40;
  for (const { stream, bars } of chart) {
    drawn.push(text(16, y + STREAM_GAP - 14, stream, { weight: 'bold' }));
    y += STREAM_GAP - 8;
    for (const bar of bars) {
      drawn.push(...barOf(bar, y, nsToPixels));
      y += BAR_HEIGHT + BAR_GAP;
    }
  }
  y += LEGEND_HEIGHT;
  drawn.push(...legendOf(chart[0].bars[0].parts, y - 8));
  const height = y + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12" role="img" aria-label="CPU time an event by stage">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: '.cache/bench.json' },
    out: { type: 'string', default: 'docs/performance-profile.svg' },
  },
});
const chart = chartOf(JSON.parse(readFileSync(values.from, 'utf8')));
if (chart.length === 0)
  throw new Error(`${values.from} has no stream both in process and end to end`);
writeFileSync(values.out, svgOf(chart));
