/** The page's script, part 7 of 9: tables of what one rank, the sources and the settings show. */
export const PAGE_PANELS_SCRIPT: string = `
/** A panel: rows are [label, cells], a cell is a text or [text, tone]. */
function showPanel(parent, id, title, columns, rows) {
  const panel = byId(id) ?? parent.appendChild(makePanel(id, title, columns));
  const table = panel.firstElementChild;
  const headings = table.tHead.rows[0];
  resize(headings, columns.length + 1, () => makeHeading('col'));
  columns.forEach((column, index) => setText(headings.cells[index + 1], column));
  const body = table.tBodies[0];
  resize(body, rows.length, () => make('tr', '', makeHeading('row')));
  rows.forEach(([label, cells], index) => showRow(body.rows[index], label, cells));
}

function makeHeading(scope) {
  const heading = make('th');
  heading.scope = scope;
  return heading;
}

function makePanel(id, title, columns) {
  const table = make('table', '', make('caption', '', title));
  table.append(make('thead', '', make('tr', '', make('td'))), make('tbody'));
  const panel = make('div', columns.length > 1 ? 'panel' : 'panel single', table);
  panel.id = id;
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

const EVENT_ROWS = [
  ['Events received', 'received'],
  ['Events accepted', 'accepted'],
  ['Events filtered', 'filtered'],
  ['Events merged', 'coalesced'],
  ['Removes held back', 'suppressed_removes'],
  ['Events published', 'published_events'],
  ['Blocks published', 'published_blocks'],
];

/** Title, columns and rows of one rank's panels. */
function panelsOf(rank, history) {
  const { dp_rank, engine, counters, block_size } = rank;
  const single = (rows) => rows.map(([label, cell]) => [label, [cell]]);
  const none = [['none', [NOTHING]]];
  const reasons = topOf(rank.filtered_by_reason).map(([name, n]) => [name, [countText(n)]]);
  const queues = Object.entries(rank.queues).map(([name, n]) => [name, [countText(n)]]);
  return [
    ['Engine', ['Value'], single([
      ['State', [rank.state.replace('_', ' '), rank.state === 'flowing' ? 'good' : '']],
      ['Connection', engine.connected ? ['connected', 'good'] : ['not connected', 'bad']],
      ['Endpoint', engine.endpoint],
      ['Last batch', ageText(engine.last_batch_age_ms)],
      ['Last sequence number', engine.last_seq ?? NOTHING],
      ['Passed on up to', engine.emitted_seq ?? NOTHING],
      ['Replay', engine.replay],
    ])],
    ['Losses', ['Messages'], single([
      ['Missing batches, replayed or not', countText(counters.missing_batches)],
      ['Lost batches', [countText(counters.lost_batches), alarm(counters.lost_batches)]],
      ['Unreadable messages', [countText(counters.malformed), alarm(counters.malformed)]],
      ['Engine restarts', countText(counters.engine_restarts)],
    ])],
    ['Events', ['Total', 'Now'], EVENT_ROWS.map(([label, counter]) =>
      [label, [countText(counters[counter]), rateText(history.rate(counter, dp_rank))]])],
    ['Filter reasons', ['Events'], reasons.length > 0 ? reasons : none],
    ['Queues', ['Entries'], queues.length > 0 ? queues : none],
    ['Identity', ['Value'], single([
      ['Worker', rank.worker_id ?? 'not found yet'],
      ['Publisher', rank.publisher_id],
      ['Last event id', rank.last_event_id ?? NOTHING],
      ['Plane address', rank.plane_endpoint ?? NOTHING],
      ['Tokens a block, set', countText(block_size.configured)],
      ['Tokens a block, seen', block_size.seen.join(', ') || NOTHING],
    ])],
  ];
}

function showPanels(parent, rank, history) {
  for (const [title, columns, rows] of panelsOf(rank, history)) {
    const id = 'rank-' + rank.dp_rank + '-' + title.toLowerCase().replace(' ', '-');
    showPanel(parent, id, title, columns, rows);
  }
}

function comparisonText(reconciliation) {
  if (reconciliation === null) return ['no master to ask', ''];
  const { state, age_ms } = reconciliation;
  if (state !== 'idle') return [state, 'wait'];
  return [age_ms === null ? 'none yet' : ageText(age_ms), ''];
}

function sourceRows({ source, connected, endpoint, objects, last_seq, suspect, counters,
  reconciliation, placement }) {
  return [
    ['Connection', connected ? ['connected', 'good'] : ['not connected', 'bad']],
    ['Endpoint', endpoint],
    ['Objects', [countText(objects) + (suspect ? ', suspect' : ''), suspect ? 'warn' : '']],
    ['Last sequence number', last_seq ?? NOTHING],
    ['Messages lost', [countText(counters.lost_messages), alarm(counters.lost_messages)]],
    ['Objects given up', countText(counters.invalidated_objects)],
    // Others have no master at all.
    ...(source === 'mooncake' ? [['Comparison with the master', comparisonText(reconciliation)]] : []),
    ['Blocks placed at routers', placement === null ? NOTHING : countText(placement.placed_blocks)],
    ...Object.entries(placement?.unplaced ?? {})
      .filter(([, count]) => count > 0)
      .map(([reason, count]) => ['Chunks not placed, ' + reason.replaceAll('_', ' '), [countText(count), 'warn']]),
  ];
}

function fillText({ bytes, capacity_bytes }) {
  if (capacity_bytes === null) return NOTHING;
  return oneDigit.format((bytes / capacity_bytes) * 100) + ' % of ' + bytesText(capacity_bytes);
}

function showCompartments({ lmcache_coordinator }) {
  if (!lmcache_coordinator) return;
  const { instances, compartments, forward } = lmcache_coordinator;
  const holds = compartments.map((one) =>
    [(one.instance_id ?? 'pool') + ', ' + one.tier + ' ' + one.backend,
      [countText(one.chunks), bytesText(one.bytes), fillText(one)]]);
  const servers = instances.map((one) => [one.instance_id, [
    one.left ? ['has left', ''] : one.whole ? ['all', 'good'] : ['in part', 'warn'],
    [countText(one.lost_batches), alarm(one.lost_batches)],
    ageText(one.last_heard_age_ms)]]);
  if (forward !== null) servers.push(['coordinator behind',
    [forward.failures > 0 ? ['no answer', 'bad'] : ['answers', 'good'], NOTHING,
      ageText(forward.last_answer_age_ms)]]);
  const parent = byId('source-panels');
  const none = [['none', [NOTHING, NOTHING, NOTHING]]];
  showPanel(parent, 'lmcache-tiers', 'LMCache holds', ['Chunks', 'Bytes', 'Filled'],
    holds.length > 0 ? holds : none);
  showPanel(parent, 'lmcache-servers', 'LMCache servers', ['Known', 'Batches lost', 'Heard'],
    servers.length > 0 ? servers : none);
}

function showSources(snapshot) {
  // LMCache's bus holds no objects; it has tables of its own.
  const sources = snapshot.sources.filter(({ source }) => source !== 'lmcache');
  byId('sources').hidden = sources.length === 0;
  for (const source of sources) {
    const rows = sourceRows(source).map(([label, cell]) => [label, [cell]]);
    showPanel(byId('source-panels'), 'source-' + source.source, source.source, ['Value'], rows);
  }
  showCompartments(snapshot);
}

function showSettings({ settings, plane }) {
  const rows = Object.entries(settings).map(([name, value]) => [name, [settingText(value)]]);
  rows.unshift(['plane endpoint in use', [plane.endpoint ?? 'none']]);
  showPanel(byId('settings'), 'panel-settings', 'Settings', ['Value'], rows);
}
`;
