/**
 * The page's script, part 2 of 4: a snapshot onto the document. Elements are kept and only changed
 * texts are set, so a selection, the focus and a scroll position survive each second's update.
 */
export const PAGE_VIEW_SCRIPT: string = `
const byId = (id) => document.getElementById(id);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setTone(element, tone) {
  if (element.dataset.tone !== tone) element.dataset.tone = tone;
}

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Makes parent have exactly count children, new ones from create(). */
function resize(parent, count, create) {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(create());
}

const STATE_TONES = { ready: 'good', degraded: 'warn', starting: 'wait', stopping: 'wait' };

function showHeader(snapshot) {
  const state = String(snapshot.state);
  const text = state.charAt(0).toUpperCase() + state.slice(1);
  setText(byId('state'), text);
  setTone(byId('state'), STATE_TONES[state] ?? 'wait');
  document.title = text + ' · kvrelay';
  setText(byId('version'), snapshot.version);
  setText(byId('compat'), snapshot.compat);
  setText(byId('uptime'), durationText(snapshot.uptime_s));
  byId('uptime').title = 'Started ' + snapshot.started_at;
}

function showNotices(ranks) {
  const notices = new Map();
  for (const rank of ranks) {
    for (const notice of rank.degraded) {
      const key = notice.code + notice.message;
      const known = notices.get(key) ?? { ...notice, ranks: [] };
      known.ranks.push(rank.dp_rank);
      notices.set(key, known);
    }
  }
  byId('attention').hidden = notices.size === 0;
  resize(byId('notices'), notices.size, () =>
    make('li', '', make('p', 'what', make('code'), make('span')), make('p'), make('p', 'remedy')));
  [...notices.values()].forEach((notice, index) => {
    const [what, message, remedy] = byId('notices').children[index].children;
    setText(what.children[0], notice.code);
    const heading = notice.ranks.length > 1 ? 'ranks ' : 'rank ';
    setText(what.children[1], heading + notice.ranks.join(', '));
    setText(message, notice.message + '.');
    setText(remedy, notice.remedy + '.');
  });
}

function total(ranks, counter) {
  return ranks.reduce((sum, rank) => sum + rank.counters[counter], 0);
}

/** By stage: title, number, its unit, a second line, and the counter its curve shows. */
function flowStages({ ranks, plane }, history) {
  const out = (counter) => countText(total(ranks, counter));
  const rate = (counter) => rateText(history.rate(counter, null));
  const waiting = countText(plane.outbox_messages) + ' waiting, ' + bytesText(plane.outbox_bytes);
  const planeStage = plane.kind === 'none'
    ? ['Event plane', 'none', 'nothing leaves', '', 'wait']
    : ['Event plane', plane.kind.toUpperCase(), plane.connected ? 'connected' : 'not connected',
      plane.outbox_messages > 0 ? waiting : 'nothing waiting', plane.connected ? 'good' : 'bad'];
  return [
    ['Received', out('received'), 'events', rate('received'), '', 'received'],
    ['Accepted', out('accepted'), 'events', out('filtered') + ' filtered out', ''],
    ['Coalesced', out('coalesced'), 'events merged', rate('coalesced'), 'less'],
    ['Suppressed', out('suppressed_removes'), 'removes held back',
      rate('suppressed_removes'), 'less'],
    ['Published', out('published_events'),
      'events, ' + compact.format(total(ranks, 'published_blocks')) + ' blocks',
      rate('published_events'), '', 'published_events'],
    planeStage,
  ];
}

function makeStage() {
  const curve = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  curve.setAttribute('viewBox', '0 0 60 20');
  curve.setAttribute('preserveAspectRatio', 'none');
  curve.setAttribute('aria-hidden', 'true');
  curve.append(document.createElementNS('http://www.w3.org/2000/svg', 'polyline'));
  const lines = ['number', 'unit', 'note'].map((className) => make('p', className));
  return make('li', '', make('h3'), ...lines, curve);
}

function showFlow(snapshot, history) {
  const stages = flowStages(snapshot, history);
  resize(byId('flow'), stages.length, makeStage);
  stages.forEach(([title, number, unit, note, tone, counter], index) => {
    const stage = byId('flow').children[index];
    const [heading, numberLine, unitLine, noteLine, curve] = stage.children;
    setText(heading, title);
    setText(numberLine, number);
    setText(unitLine, unit);
    setText(noteLine, note);
    setTone(stage, tone);
    curve.style.display = counter ? '' : 'none';
    if (!counter) return;
    curve.firstElementChild.setAttribute('points', curvePoints(history.rates(counter)));
  });
}

/** The last minute from left to right, 20 units high at its own maximum. */
function curvePoints(rates) {
  const highest = Math.max(1e-9, ...rates.map((rate) => rate.perSecond));
  const now = rates.length > 0 ? rates.at(-1).uptimeS : 0;
  const points = rates.map(({ uptimeS, perSecond }) => {
    const x = HISTORY_S - (now - uptimeS);
    const y = 19 - (perSecond / highest) * 18;
    return x.toFixed(1) + ',' + y.toFixed(1);
  });
  return points.join(' ');
}
`;
