/** The page's script, part 5 of 9: the pipeline, each stage with its rate and what waits in it. */
export const PAGE_FLOW_SCRIPT: string = `
function sumOver(ranks, read) {
  return ranks.reduce((sum, rank) => sum + (read(rank) ?? 0), 0);
}

const liveBlocks = ({ blocks }) => Object.values(blocks).reduce((sum, count) => sum + count, 0);

/** A stage without a queue of its own works an event off before the next one is read. */
const STAGES = [
  {
    title: 'Listener', counter: 'received', unit: 'events received', queues: ['listener', 'replay'],
    note: ({ ranks }) => {
      const lost = sumOver(ranks, ({ counters }) => counters.lost_batches + counters.malformed);
      return lost > 0 ? [countText(lost) + ' messages lost', 'bad'] : ['nothing lost', ''];
    },
  },
  {
    title: 'Filter', counter: 'accepted', unit: 'events accepted', queues: ['engines', 'processor'],
    note: ({ ranks }) =>
      [countText(sumOver(ranks, ({ counters }) => counters.filtered)) + ' filtered out', ''],
  },
  {
    title: 'Batching', counter: 'coalesced', unit: 'events merged', queues: ['batching'],
    note: ({ settings }) => settings.batchingTimeoutMs > 0
      ? ['held for up to ' + latencyText(settings.batchingTimeoutMs), '']
      : ['sent with each message', ''],
  },
  {
    title: 'Dedup', counter: 'suppressed_removes', unit: 'removes held back', queues: ['dedup'],
    note: () => ['another copy is left', ''],
  },
  {
    title: 'Indexer', counter: 'published_blocks', unit: 'blocks published', queues: ['indexer'],
    note: ({ ranks }) => [countText(sumOver(ranks, liveBlocks)) + ' live now', ''],
  },
  {
    title: 'Event plane', counter: 'published_events', unit: 'events published',
    queues: ['outbox', 'sinks'],
    note: ({ plane }) => {
      if (plane.kind === 'none') return ['none: nothing leaves', 'wait'];
      const kind = plane.kind.toUpperCase();
      return plane.connected ? [kind + ', connected', 'good'] : [kind + ', not connected', 'bad'];
    },
  },
];

/** Entries in the stage's queues over all ranks; null where it has none. */
function queueDepth(ranks, names) {
  const known = names.filter((name) => ranks.some(({ queues }) => name in queues));
  if (known.length === 0) return null;
  return known.reduce((sum, name) => sum + sumOver(ranks, ({ queues }) => queues[name]), 0);
}

function queueText(stage, { ranks, plane }) {
  const depth = queueDepth(ranks, stage.queues);
  if (depth === null) return 'no queue';
  const isOutbox = stage.queues.includes('outbox') && plane.outbox_bytes > 0;
  const size = isOutbox ? ', ' + bytesText(plane.outbox_bytes) : '';
  return countText(depth) + ' in queue' + size;
}

function makeStage() {
  const lines = ['number', 'unit', 'note', 'queue'].map((className) => make('p', className));
  return make('li', '', make('h3'), ...lines, makeCurve());
}

function showFlow(snapshot, history) {
  resize(byId('flow'), STAGES.length, makeStage);
  STAGES.forEach((stage, index) => {
    const { counter } = stage;
    const element = byId('flow').children[index];
    const [heading, number, unit, note, queue, curve] = element.children;
    setText(heading, stage.title);
    setText(number, rateText(history.rate(counter, null)));
    const total = sumOver(snapshot.ranks, ({ counters }) => counters[counter]);
    setText(unit, countText(total) + ' ' + stage.unit);
    const [text, tone] = stage.note(snapshot);
    setText(note, text);
    setTone(note, tone);
    setText(queue, queueText(stage, snapshot));
    queue.classList.toggle('waiting', (queueDepth(snapshot.ranks, stage.queues) ?? 0) > 0);
    drawSparkline(curve, stage.title + ', ' + stage.unit, history.rates(counter, null), rateText,
      history);
  });
}
`;
