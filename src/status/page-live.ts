/** The page's script, part 4 of 4: the stream, and polling while there is none. */
export const PAGE_LIVE_SCRIPT: string = `
const SILENCE_MS = 2500;
const POLL_TIMEOUT_MS = 3000;
const REOPEN_MS = 15000;
const history = new History();
let stream = null;
let openedAt = 0;
let lastSnapshotAt = performance.now();
let isPolling = false;

function show(snapshot, link) {
  lastSnapshotAt = performance.now();
  history.add(snapshot);
  showHeader(snapshot);
  showNotices(snapshot.ranks);
  showFlow(snapshot, history);
  showRanks(snapshot, history);
  showSources(snapshot);
  showSettings(snapshot);
  setText(byId('link'), link);
  document.body.classList.remove('stale');
}

function showLost() {
  setText(byId('state'), 'No answer from the relay');
  setTone(byId('state'), 'bad');
  const seconds = Math.round((performance.now() - lastSnapshotAt) / 1000);
  setText(byId('link'), 'values are ' + durationText(seconds) + ' old');
  document.title = 'No answer · kvrelay';
  document.body.classList.add('stale');
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
