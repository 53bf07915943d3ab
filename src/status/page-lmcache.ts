/** The page's script, part 8 of 9: tables of an LMCache beside the engine; none of it without one. */
export const PAGE_LMCACHE_SCRIPT: string = `
function shareText(share) {
  return isNumber(share) ? oneDigit.format(share * 100) + ' %' : NOTHING;
}

function lmcachePanels(lmcache) {
  const { requests, hit_rate, losses, l1, contracts } = lmcache;
  const single = (rows) => rows.map(([label, cell]) => [label, [cell]]);
  const none = [['none', [NOTHING]]];
  const failures = topOf(lmcache.failures).map(([name, n]) => [name, [[countText(n), 'warn']]]);
  const violations = contracts.violations.map(({ event, field, kind, count }) =>
    [event + ' ' + field + ', ' + kind, [[countText(count), 'warn']]]);
  const shares = (rows) => rows.map(({ name, requested_tokens, hit_tokens }) =>
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
    ['Traffic', ['Written', 'Read', 'Evicted or failed'], [
      ['L1, chunks', [countText(l1.written), countText(l1.read), countText(l1.evicted)]],
      ...lmcache.adapters.map((adapter) => ['L2 ' + adapter.l2_name, [
        bytesText(adapter.stored_bytes), bytesText(adapter.loaded_bytes),
        [countText(adapter.failed_stores), alarm(adapter.failed_stores)],
      ]]),
    ]],
    ['Failures', ['Keys'], failures.length > 0 ? failures : none],
    ['Models', ['Tokens asked for', 'Found'], lmcache.models.length > 0 ? shares(lmcache.models) : none],
    ['Salts', ['Tokens asked for', 'Found'], lmcache.salts.length > 0 ? shares(lmcache.salts) : none],
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
  for (const [title, columns, rows] of lmcachePanels(lmcache))
    showPanel(byId('lmcache-panels'), 'lmcache-' + title.toLowerCase().replace(' ', '-'), title,
      columns, rows);
}
`;
