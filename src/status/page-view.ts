/**
 * The page's script, part 3 of 9: a snapshot onto the document. Elements are kept and only changed
 * texts are set, so a selection, the focus and a scroll position survive each second's update.
 */
export const PAGE_VIEW_SCRIPT: string = `
const byId = (id) => document.getElementById(id);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
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
  showState(state.charAt(0).toUpperCase() + state.slice(1), STATE_TONES[state] ?? 'wait');
  setText(byId('version'), snapshot.version);
  setText(byId('compat'), snapshot.compat);
  setText(byId('uptime'), durationText(snapshot.uptime_s));
  byId('uptime').title = 'Started ' + snapshot.started_at;
}

function showState(text, tone) {
  setText(byId('state'), text);
  setTone(byId('state'), tone);
  const title = text + ' · kvrelay';
  if (document.title !== title) document.title = title;
}

function ranksText(some, all) {
  if (some.length > 1 && some.length === all.length) return 'all ' + all.length + ' ranks';
  return (some.length > 1 ? 'ranks ' : 'rank ') + some.join(', ');
}

/** One notice a code, with the ranks it holds for, and one for each of a store. */
function noticesOf({ ranks, sources }) {
  const notices = new Map();
  for (const rank of ranks) {
    for (const notice of rank.degraded) {
      const key = notice.code + notice.message;
      const known = notices.get(key) ?? { ...notice, ranks: [] };
      known.ranks.push(rank.dp_rank);
      notices.set(key, known);
    }
  }
  const ofRanks = [...notices.values()].map((notice) =>
    ({ ...notice, where: ranksText(notice.ranks, ranks) }));
  return ofRanks.concat(sources.flatMap(({ source, degraded }) =>
    degraded.map((notice) => ({ ...notice, where: source }))));
}

function showNotices(snapshot) {
  const notices = noticesOf(snapshot);
  byId('attention').hidden = notices.length === 0;
  resize(byId('notices'), notices.length, makeNotice);
  notices.forEach((notice, index) => {
    const [what, message, remedy] = byId('notices').children[index].children;
    setText(what.children[0], notice.code);
    setText(what.children[1], notice.where);
    setText(message, notice.message + '.');
    setText(remedy.children[1], notice.remedy + '.');
  });
  const codes = notices.map((notice) => notice.code + ' on ' + notice.where);
  return codes.join('; ');
}

function makeNotice() {
  return make('li', '',
    make('p', 'what', make('code'), make('span')), make('p', 'message'),
    make('p', 'remedy', make('b', '', 'What to do'), make('span')));
}

/** The one live region: it changes with the state and the codes only, never with a figure. */
function announce(text) {
  setText(byId('announcement'), text);
}
`;
