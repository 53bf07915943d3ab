/** The page's script, part 8 of 9: tables of an LMCache beside the engine; none of it without one. */
export const PAGE_LMCACHE_SCRIPT: string = `
function shareText(share) {
  return isNumber(share) ? oneDigit.format(share * 100) + ' %' : NOTHING;
}

function speedText(gbPerS) {
  return isNumber(gbPerS) ? threeDigits.format(gbPerS) : NOTHING;
}

/** The relay keeps the minutes: a page that has just been opened shows them too. */
function showHitRate(parent, { minute, by_minute }) {
  if (parent.children.length === 0) parent.append(makeChart('Hit rate'));
  const line = by_minute
    .map((value, index) => ({ atS: (index - by_minute.length + 1) * 60, value }))
    .filter(({ value }) => value !== null);
  const hour = { nowS: 0, spanS: by_minute.length * 60 };
  drawChart(parent.children[0], [['Tokens found', line, shareText(minute)]], shareText, hour);
}

function lmcachePanels(lmcache) {
  const { requests, hit_rate, losses, l1, adapters, contracts } = lmcache;
  const single = (rows) => rows.map(([label, cell]) => [label, [cell]]);
  const none = [['none', [NOTHING]]];
  const failures = topOf(lmcache.failures).map(([name, n]) => [name, [[countText(n), 'warn']]]);
  const violations = contracts.violations.map(({ event, field, kind, count }) =>
    [event + ' ' + field + ', ' + kind, [[countText(count), 'warn']]]);
  const shares = (rows) => rows.length === 0 ? [['none', [NOTHING, NOTHING]]] : rows.map(({ name, requested_tokens, hit_tokens }) =>
    [name || '(none)', [countText(requested_tokens),
      shareText(requested_tokens > 0 ? hit_tokens / requested_tokens : null)]]);
  const lost = losses.lost_messages + losses.bridge_dropped + losses.bus_dropped;
  return [
    ['Bus', ['Value'], single([
      ['Connection', lmcache.connected ? ['connected', 'good'] : ['not connected', 'bad']],
      ['Endpoint', lmcache.endpoint],
      ['LMCache', lmcache.version ?? 'not known'],
      ['Last message', ageText(lmcache.last_message_age_ms)],
      ['Events', countText(lmcache.events)],
      ['Replay', lmcache.replay],
    ])],
    ['Requests', ['Now'], single([
      ['In flight', countText(requests.in_flight)],
      ['Transfers under way', countText(requests.open_transfers)],
      ['Done', countText(requests.completed)],
      ['Given up', countText(requests.timed_out)],
    ])],
    ['Hit rate', ['Tokens found'], single([
      ['Last minute', shareText(hit_rate.minute)],
      ['Last 10 minutes', shareText(hit_rate.ten_minutes)],
      ['Last hour', shareText(hit_rate.hour)],
      ['Since the start', shareText(hit_rate.total)],
    ])],
    ['Traffic', ['Written', 'Read'], [
      ['L1, chunks', [countText(l1.written), countText(l1.read)]],
      ...adapters.map((adapter) => ['L2 ' + adapter.l2_name,
        [bytesText(adapter.stored_bytes), bytesText(adapter.loaded_bytes)]]),
    ]],
    ['Throughput, GB/s', ['Written', 'Read'], adapters.length === 0
      ? [['none', [NOTHING, NOTHING]]]
      : adapters.map((adapter) => ['L2 ' + adapter.l2_name,
        [speedText(adapter.store_gb_per_s), speedText(adapter.load_gb_per_s)]])],
    ['Evictions', ['Chunks'], single([
      ['From L1', countText(l1.evicted)], ['From L2', countText(lmcache.l2.evicted)]])],
    ['Failures', ['Keys'], failures.length > 0 ? failures : none],
    ['Models', ['Tokens asked for', 'Found'], shares(lmcache.models)],
    ['Salts', ['Tokens asked for', 'Found'], shares(lmcache.salts)],
    ['Lost', ['Count'], single([
      ['Messages and events', [countText(lost), alarm(lost)]],
      ['Unreadable messages', [countText(losses.malformed), alarm(losses.malformed)]],
      ['Restarts', countText(losses.restarts)],
    ])],
    ['Contracts', ['Events'], [
      ...violations,
      ['Unknown types', [countText(contracts.unknown_events)]],
      ['Keys that are new', [countText(contracts.additive_keys)]],
    ]],
  ];
}

function showLmcache({ lmcache }) {
  byId('lmcache').hidden = !lmcache;
  if (!lmcache) return;
  showHitRate(byId('lmcache-chart'), lmcache.hit_rate);
  for (const [title, columns, rows] of lmcachePanels(lmcache))
    showPanel(byId('lmcache-panels'), 'lmcache-' + title.toLowerCase().replaceAll(/[^a-z]+/g, '-'),
      title, columns, rows);
}
`;
