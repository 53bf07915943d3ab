/**
 * The page's script, part 6 of 9: one compact row a rank; its charts and tables below it on demand.
 * What is closed is not drawn, so that many ranks cost little.
 */
export const PAGE_RANKS_SCRIPT: string = `
const MAX_REASONS = 5;
const TIERS = { device: 'Device', host_pinned: 'Host pinned', disk: 'Disk', external: 'External' };
const COLUMNS = ['Rank', 'Engine', 'Last sequence no.', 'Lost batches', 'Live blocks',
  'Throughput', 'Latency, 99 %', 'Filtered events'];
const alarm = (value) => (value > 0 ? 'bad' : '');

/** By column after the first: text, tone, a second text, and [title, line, format] of a curve. */
const CELLS = [
  (rank) => {
    const { connected } = rank.engine;
    const codes = rank.degraded.map(({ code }) => code).join(', ');
    const isGood = connected && rank.state === 'flowing';
    const state = connected ? rank.state.replace('_', ' ') : 'not connected';
    return [state, isGood ? 'good' : connected ? '' : 'bad', codes];
  },
  ({ engine }) => [engine.last_seq ?? NOTHING, '', ageText(engine.last_batch_age_ms)],
  ({ counters }) => [countText(counters.lost_batches), alarm(counters.lost_batches),
    counters.malformed > 0 ? countText(counters.malformed) + ' unreadable' : ''],
  (rank, history) => [countText(liveBlocks(rank)), '', '',
    ['Live blocks', history.values(rank.dp_rank, liveBlocks), countText]],
  ({ dp_rank }, history) => [rateText(history.rate('received', dp_rank)), '', '',
    ['Events received', history.rates('received', dp_rank), rateText]],
  ({ dp_rank, latency_ms }, history) => [latencyText(latency_ms.p99), '', '',
    ['Latency', history.values(dp_rank, (rank) => rank.latency_ms.p99), latencyText]],
  ({ counters, filtered_by_reason }) => [countText(counters.filtered), '',
    topOf(filtered_by_reason)[0]?.[0] ?? ''],
];

/** The highest entries, highest first. */
function topOf(counts) {
  return Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, MAX_REASONS);
}

function showRanks({ ranks }, history) {
  const table = byId('ranks');
  setText(byId('ranks-title'), ranks.length === 1 ? 'Rank' : ranks.length + ' ranks');
  table.parentElement.classList.toggle('several', ranks.length > 1);
  const headings = table.tHead.rows[0];
  if (headings.cells.length === 0) COLUMNS.forEach((column) => {
    const heading = makeHeading('col');
    heading.setAttribute('role', 'columnheader');
    heading.textContent = column;
    headings.append(heading);
  });
  const rows = table.tBodies[0];
  const isFirstTime = rows.children.length === 0;
  while (rows.children.length > ranks.length * 2) rows.lastElementChild.remove();
  ranks.forEach((rank, index) => {
    if (rows.children.length <= index * 2) {
      rows.append(...makeRank(index, isFirstTime && ranks.length === 1));
    }
    showRank(rows.children[index * 2], rank, history);
    const more = rows.children[index * 2 + 1];
    if (!more.hidden) showDetails(more.cells[0], rank, history);
  });
}

/** Roles are named, as a table shown as blocks on a phone would lose them in some browsers. */
function makeRank(index, isOpen) {
  const button = make('button', 'toggle');
  button.type = 'button';
  const heading = makeHeading('row');
  heading.setAttribute('role', 'rowheader');
  heading.append(button);
  const row = make('tr', 'rank', heading, ...CELLS.map((_, cell) => makeCell(COLUMNS[cell + 1])));
  const details = make('td');
  details.colSpan = COLUMNS.length;
  details.setAttribute('role', 'cell');
  const more = make('tr', 'more', details);
  for (const each of [row, more]) each.setAttribute('role', 'row');
  more.id = 'rank-details-' + index;
  button.setAttribute('aria-controls', more.id);
  const setOpen = (open) => {
    more.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
  };
  setOpen(isOpen);
  button.addEventListener('click', () => {
    setOpen(more.hidden);
    if (lastSnapshot) showRanks(lastSnapshot, history);
  });
  return [row, more];
}

function makeCell(label) {
  const cell = make('td', '', make('div', '', make('span', 'value'), make('span', 'second')));
  cell.dataset.label = label;
  cell.setAttribute('role', 'cell');
  return cell;
}

function showRank(row, rank, history) {
  setText(row.cells[0].firstElementChild, 'Rank ' + rank.dp_rank);
  row.classList.toggle('degraded', rank.degraded.length > 0);
  CELLS.forEach((read, index) => {
    const cell = row.cells[index + 1].firstElementChild;
    const [text, tone, second, curve] = read(rank, history);
    setText(cell.children[0], text);
    setTone(cell.children[0], tone);
    setText(cell.children[1], second);
    if (!curve) return;
    if (cell.children.length === 2) {
      cell.className = 'curved';
      cell.append(makeCurve());
    }
    drawSparkline(cell.children[2], curve[0], curve[1], curve[2], history);
  });
}

function showDetails(cell, rank, history) {
  if (cell.children.length === 0) {
    const titles = ['Live blocks by tier', 'Throughput', 'Latency since the start'];
    cell.append(make('div', 'charts', ...titles.map(makeChart)), make('div', 'panels'));
  }
  const [charts, panels] = cell.children;
  const { dp_rank } = rank;
  const [blocks, throughput, latency] = charts.children;
  drawChart(blocks, Object.entries(TIERS).map(([tier, name]) => [
    name, history.values(dp_rank, (each) => each.blocks[tier]), countText(rank.blocks[tier]),
  ]), countText, history);
  drawChart(throughput, [['Received', 'received'], ['Published', 'published_events']].map(
    ([name, counter]) => [
      name + ' events', history.rates(counter, dp_rank), rateText(history.rate(counter, dp_rank)),
    ]), rateText, history);
  drawChart(latency, [['Half within', 'p50'], ['99 % within', 'p99']].map(([name, quantile]) => [
    name, history.values(dp_rank, (each) => each.latency_ms[quantile]),
    latencyText(rank.latency_ms[quantile]),
  ]), latencyText, history);
  showPanels(panels, rank, history);
}
`;
