/** The page's script, part 3 of 4: tables of what each rank, source and setting shows. */
export const PAGE_PANELS_SCRIPT: string = `
/** A panel: columns are ranks, rows are [label, cells]; a cell is a text or [text, tone]. */
function showPanel(parent, id, title, columns, rows) {
  const panel = byId(id) ?? parent.appendChild(makePanel(id, title));
  const table = panel.querySelector('table');
  const headings = table.tHead.rows[0];
  resize(headings, columns.length + 1, () => makeHeading('col'));
  columns.forEach((column, index) => setText(headings.cells[index + 1], column));
  const body = table.tBodies[0];
  resize(body, rows.length, () => make('tr', '', makeHeading('row')));
  rows.forEach(([label, cells], index) => showRow(body.rows[index], label, cells));
  // Only what scrolls needs a stop for the keyboard.
  panel.tabIndex = panel.scrollWidth > panel.clientWidth ? 0 : -1;
}

function makeHeading(scope) {
  const heading = make('th');
  heading.scope = scope;
  return heading;
}

function makePanel(id, title) {
  const table = make('table', '', make('caption', '', title));
  table.append(make('thead', '', make('tr', '', make('td'))), make('tbody'));
  const panel = make('div', 'panel', table);
  panel.id = id;
  panel.setAttribute('role', 'group');
  panel.setAttribute('aria-label', title);
  return panel;
}

function showRow(row, label, cells) {
  setText(row.cells[0], label);
  resize(row, cells.length + 1, () => make('td'));
  cells.forEach((cell, index) => {
    const [text, tone] = Array.isArray(cell) ? cell : [cell, ''];
    setText(row.cells[index + 1], text);
    setTone(row.cells[index + 1], tone);
  });
}

const MAX_REASONS = 5;
const alarm = (value) => [countText(value), value > 0 ? 'bad' : ''];
const rateOf = (counter) => (rank, history) => rateText(history.rate(counter, rank.dp_rank));

/** Row label to cell of one rank, by panel. */
const PANELS = [
  ['Engine', [
    ['State', (rank) => [rank.state.replace('_', ' '), rank.state === 'flowing' ? 'good' : '']],
    ['Connection', ({ engine }) =>
      engine.connected ? ['connected', 'good'] : ['not connected', 'bad']],
    ['Endpoint', ({ engine }) => engine.endpoint],
    ['Last batch', ({ engine }) => ageText(engine.last_batch_age_ms)],
    ['Last sequence number', ({ engine }) => engine.last_seq ?? NOTHING],
    ['Passed on up to', ({ engine }) => engine.emitted_seq ?? NOTHING],
    ['Replay', ({ engine }) => engine.replay],
  ]],
  ['Rate and latency', [
    ['Received events', rateOf('received')],
    ['Accepted events', rateOf('accepted')],
    ['Published events', rateOf('published_events')],
    ['Published blocks', rateOf('published_blocks')],
    ['Latency, half within', (rank) => latencyText(rank.latency_ms.p50)],
    ['Latency, 99 % within', (rank) => latencyText(rank.latency_ms.p99)],
  ]],
  ['Live blocks', [
    ['Device', (rank) => countText(rank.blocks.device)],
    ['Host pinned', (rank) => countText(rank.blocks.host_pinned)],
    ['Disk', (rank) => countText(rank.blocks.disk)],
    ['External', (rank) => countText(rank.blocks.external)],
    ['Tokens a block, set', (rank) => countText(rank.block_size.configured)],
    ['Tokens a block, seen', (rank) => rank.block_size.seen.join(', ') || NOTHING],
  ]],
  ['Identity', [
    ['Worker', (rank) => rank.worker_id ?? 'not found yet'],
    ['Publisher', (rank) => rank.publisher_id],
    ['Last event id', (rank) => rank.last_event_id ?? NOTHING],
  ]],
  ['Losses', [
    ['Lost batches', (rank) => alarm(rank.counters.lost_batches)],
    ['Unreadable messages', (rank) => alarm(rank.counters.malformed)],
    ['Filtered events', (rank) => countText(rank.counters.filtered)],
  ]],
];

function showRanks({ ranks }, history) {
  const panels = byId('panels');
  panels.className = 'panels ' + (ranks.length > 2 ? 'many' : ranks.length === 2 ? 'pair' : 'one');
  const columns = ranks.map((rank) => 'Rank ' + rank.dp_rank);
  setText(byId('ranks-title'), ranks.length === 1 ? columns[0] : 'Ranks');
  panels.style.setProperty('--columns', columns.length);
  for (const [title, rows] of PANELS) {
    showPanel(panels, panelId(title), title, columns,
      rows.map(([label, cell]) => [label, ranks.map((rank) => cell(rank, history))]));
  }
  showTop(panels, 'Filter reasons', columns, ranks.map((rank) => rank.filtered_by_reason));
  showTop(panels, 'Queues', columns, ranks.map((rank) => rank.queues));
}

function panelId(title) {
  return 'panel-' + title.toLowerCase().replaceAll(' ', '-');
}

/** The highest entries over all ranks, highest first. */
function showTop(panels, title, columns, countsByRank) {
  const totals = new Map();
  for (const counts of countsByRank) {
    for (const [name, count] of Object.entries(counts)) {
      totals.set(name, (totals.get(name) ?? 0) + count);
    }
  }
  const top = [...totals].sort((a, b) => b[1] - a[1]).slice(0, MAX_REASONS);
  const rows = top.map(([name]) => [
    name,
    countsByRank.map((counts) => countText(counts[name] ?? 0)),
  ]);
  const nothing = ['none', columns.map(() => NOTHING)];
  showPanel(panels, panelId(title), title, columns, rows.length > 0 ? rows : [nothing]);
}

function showSources({ sources }) {
  byId('sources').hidden = sources.length === 0;
  if (sources.length === 0) return;
  showPanel(byId('source-panels'), 'panel-sources', 'Store sources', ['Connection', 'Endpoint'],
    sources.map(({ source, connected, endpoint }) =>
      [source, [connected ? ['connected', 'good'] : ['not connected', 'bad'], endpoint]]));
}

function showSettings({ settings, plane }) {
  const rows = Object.entries(settings).map(([name, value]) => [name, [settingText(value)]]);
  rows.unshift(['plane endpoint in use', [plane.endpoint ?? 'none']]);
  showPanel(byId('settings'), 'panel-settings', 'Settings', ['Value'], rows);
}
`;
