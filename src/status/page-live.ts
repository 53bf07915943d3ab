/** The page's script, part 9 of 9: the stream, and polling while there is none. */
export const PAGE_LIVE_SCRIPT: string = `
const SILENCE_MS = 2500;
const POLL_TIMEOUT_MS = 3000;
const REOPEN_MS = 15000;
const history = new History();
let stream = null;
let openedAt = 0;
let lastSnapshotAt = performance.now();
let lastSnapshot = null;
let isPolling = false;

function show(snapshot, link) {
  lastSnapshotAt = performance.now();
  lastSnapshot = snapshot;
  history.add(snapshot, lastSnapshotAt / 1000);
  showHeader(snapshot);
  const codes = showNotices(snapshot);
  showFlow(snapshot, history);
  showRanks(snapshot, history);
  showSources(snapshot);
  showLmcache(snapshot);
  showSettings(snapshot);
  setText(byId('link'), link);
  byId('lost').hidden = true;
  announce(byId('state').textContent + (codes === '' ? '' : ': ' + codes));
}

function showLost() {
  showState('No answer', 'bad');
  const age = durationText(Math.round((performance.now() - lastSnapshotAt) / 1000));
  setText(byId('lost-age'), lastSnapshot === null
    ? 'It has not answered for ' + age + '.'
    : 'What is shown here is ' + age + ' old.');
  setText(byId('link'), 'waiting');
  byId('lost').hidden = false;
  announce('No answer from the relay');
}

function openStream() {
  openedAt = performance.now();
  stream = new EventSource('api/stream');
  stream.onmessage = (message) => show(JSON.parse(message.data), 'live');
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) poll();
  };
}

async function poll() {
  if (isPolling) return;
  isPolling = true;
  try {
    const signal = AbortSignal.timeout(POLL_TIMEOUT_MS);
    const response = await fetch('api/status', { cache: 'no-store', signal });
    if (!response.ok) throw new Error('HTTP ' + response.status);
    show(await response.json(), 'polling');
  } catch {
    showLost();
  } finally {
    isPolling = false;
  }
}

/** A browser gives a stream up for good where it is refused, and a proxy may hold one back. */
function watch() {
  if (document.hidden) return;
  const now = performance.now();
  if (now - lastSnapshotAt > SILENCE_MS) poll();
  if (stream?.readyState === EventSource.CLOSED && now - openedAt > REOPEN_MS) openStream();
}

/** A hidden page leaves its place among the bounded streams to others. */
document.addEventListener('visibilitychange', () => {
  stream?.close();
  if (!document.hidden) openStream();
});

if (!document.hidden) openStream();
setInterval(watch, 1000);
`;
