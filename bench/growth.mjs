/**
 * What a block costs as things grow, through relays without sockets.
 *
 *   node bench/growth.mjs [--quick]
 *
 * live     blocks that are held, in sequences that grow and are evicted at random (live-blocks.mjs)
 * ranks    relays side by side in one process, in turn, RANKS_BLOCKS together
 * event    blocks of an event; a batch stores one event and removes one in one event, and HELD_BLOCKS stay
 * block    tokens of a block; batches as for `event`, of EVENT_BLOCKS
 *
 * Times    are of the CPU, all threads, without the making of the batches, in code that is warm: medians of ROUNDS. Each
 *          live size runs in a process of its own, since the kernel's memory never shrinks.
 * Memory   is the kernel's (index, counts, lists), over the blocks held.
 * Prints   tables; a parent process gets the figures as a message.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { kernelBytesTaken } from '../dist/index.js';
import { BatchWriter } from './batch-writer.mjs';
import { LiveBlocks } from './live-blocks.mjs';
import { createRelay } from './relay-in-process.mjs';
import { median, table } from './report.mjs';
import { seeded } from './seeded.mjs';

const LIVE = [10_000, 100_000, 1_000_000, 5_000_000];
/** Most times the cost at the smallest that a size may have; null where nothing is promised. */
const LIVE_GOALS = [null, 1.5, 1.5, 2];
const RANKS = [1, 2, 4, 8];
const RANKS_BLOCKS = 100_000;
const EVENT_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const BLOCK_SIZES = [16, 32, 64, 128, 256, 512];
const EVENT_BLOCKS = 8;
const HELD_BLOCKS = 16_384;

const WARM_UP_BATCHES = 4000;
const ROUNDS = 9;
const ROUND_BATCHES = 2000;
/** Of a round of an event or block size, so that all take about as long. */
const ROUND_TOKENS = 1_000_000;

/** Nanoseconds a block that it takes to push all the batches. */
function play(batches, push) {
  const before = process.cpuUsage();
  for (const batch of batches) push(batch);
  const { user, system } = process.cpuUsage(before);
  const blocks = batches.reduce((sum, batch) => sum + batch.blocks, 0);
  return ((user + system) * 1000) / blocks;
}

function roundsOf(measureOne) {
  return median(Array.from({ length: ROUNDS }, measureOne));
}

/** A stream that a relay takes for another one would be measured for nothing. */
function checkHeld(relay, blocks) {
  if (relay.held !== blocks) throw new Error(`${relay.held} blocks are held, not ${blocks}`);
}

function measureLive(blocks) {
  const relay = createRelay(16);
  const before = kernelBytesTaken();
  const live = new LiveBlocks(blocks);
  for (const frames of live.fill()) relay.push(frames);
  const bytes = kernelBytesTaken() - before;
  const filled = live.size;
  const push = ({ frames }) => relay.push(frames);
  play(live.steps(WARM_UP_BATCHES), push);
  const ns = roundsOf(() => play(live.steps(ROUND_BATCHES), push));
  checkHeld(relay, live.size);
  return [{ blocks, held: live.size, nsPerBlock: ns, bytesPerBlock: bytes / filled }];
}

function measureRanks() {
  return RANKS.map((count) => {
    const ranks = Array.from({ length: count }, (_, dpRank) => {
      const live = new LiveBlocks(RANKS_BLOCKS / count, { dpRank, seed: dpRank + 1 });
      return { live, relay: createRelay(16) };
    });
    for (const { live, relay } of ranks) for (const frames of live.fill()) relay.push(frames);
    // In turn: the next batch is of the next rank.
    const stepsOf = (batches) => {
      const each = ranks.map(({ live, relay }) =>
        live.steps(Math.ceil(batches / count)).map((step) => ({ ...step, relay })),
      );
      return Array.from({ length: batches }, (_, at) => each[at % count][Math.floor(at / count)]);
    };
    const push = ({ frames, relay }) => relay.push(frames);
    play(stepsOf(WARM_UP_BATCHES), push);
    const ns = roundsOf(() => play(stepsOf(ROUND_BATCHES), push));
    for (const { live, relay } of ranks) {
      checkHeld(relay, live.size);
      relay.stop();
    }
    return { ranks: count, nsPerBlock: ns };
  });
}

/** Batches that store one event of a chain, and remove the oldest once HELD_BLOCKS are held. */
function eventMaker(eventBlocks, blockSize) {
  const random = seeded(1);
  const writer = new BatchWriter();
  const heldEvents = HELD_BLOCKS / eventBlocks;
  // A ring: the oldest is where the next one goes.
  const held = new Array(heldEvents).fill(null);
  let next = 0;
  return (count) =>
    Array.from({ length: count }, () => {
      const hashes = Array.from({ length: eventBlocks }, () => ({ high: random(), low: random() }));
      const tokens = Array.from({ length: eventBlocks * blockSize }, () => random() % 150_000);
      const evicted = held[next];
      writer.start(evicted === null ? 1 : 2);
      if (evicted !== null) writer.removed(...evicted.reverse());
      writer.stored(hashes, null, tokens, blockSize);
      held[next] = hashes;
      next = (next + 1) % heldEvents;
      return { frames: writer.finish(), blocks: eventBlocks * (evicted === null ? 1 : 2) };
    });
}

function measureEvents(shapes) {
  const warm = createRelay(16);
  play(eventMaker(EVENT_BLOCKS, 16)(WARM_UP_BATCHES), ({ frames }) => warm.push(frames));
  warm.stop();
  return shapes.map(({ eventBlocks, blockSize }) => {
    const relay = createRelay(blockSize);
    const make = eventMaker(eventBlocks, blockSize);
    const round = Math.ceil(ROUND_TOKENS / (eventBlocks * blockSize));
    const push = ({ frames }) => relay.push(frames);
    for (const batch of make(HELD_BLOCKS / eventBlocks)) push(batch);
    play(make(round), push);
    const ns = roundsOf(() => play(make(round), push));
    checkHeld(relay, HELD_BLOCKS);
    relay.stop();
    return { eventBlocks, blockSize, nsPerBlock: ns };
  });
}

const MEASURES = {
  live: (blocks) => measureLive(Number(blocks)),
  ranks: measureRanks,
  events: () => measureEvents(EVENT_SIZES.map((eventBlocks) => ({ eventBlocks, blockSize: 16 }))),
  blocks: () =>
    measureEvents(BLOCK_SIZES.map((blockSize) => ({ eventBlocks: EVENT_BLOCKS, blockSize }))),
};

function measureApart(name, value = '') {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['--measure', name, '--value', `${value}`]);
    child.once('message', resolve);
    child.once('error', reject);
    child.once('exit', (code) => code !== 0 && reject(new Error(`${name}: exit code ${code}`)));
  });
}

function print({ live, ranks, events, blocks }) {
  const ns = (value) => Math.round(value);
  const times = (value) => Number(value.toFixed(2));
  const least = live[0].nsPerBlock;
  const liveRows = live.map(({ held, nsPerBlock: cost, bytesPerBlock }, at) => [
    held,
    ns(cost),
    times(cost / least),
    LIVE_GOALS[at] === null ? 'none' : `at most ${LIVE_GOALS[at]}`,
    ns(bytesPerBlock),
  ]);
  const liveHead = ['live blocks', 'ns/block', 'times the first', 'goal', 'kernel bytes/block'];
  const rankRows = ranks.map((one) => [
    one.ranks,
    ns(one.nsPerBlock),
    times(one.nsPerBlock / ranks[0].nsPerBlock),
  ]);
  const eventRows = events.map(({ eventBlocks, nsPerBlock: cost }, at) => {
    const half = events[at - 1];
    const growth = half === undefined ? 'none' : times((2 * cost) / half.nsPerBlock).toFixed(2);
    return [eventBlocks, ns(cost), ns(cost * 2 * eventBlocks), growth];
  });
  const eventHead = ['blocks an event', 'ns/block', 'ns/batch', 'times that of half the blocks'];
  const blockRows = blocks.map(({ blockSize, nsPerBlock: cost }) => [
    blockSize,
    ns(cost),
    times((2 * cost) / blockSize),
  ]);
  const sections = [
    ['Live blocks', liveHead, liveRows],
    ['Ranks', ['ranks', 'ns/block', 'times the first'], rankRows],
    ['Event sizes: linear is at most 2 times that of half the blocks', eventHead, eventRows],
    ['Block sizes', ['tokens a block', 'ns/block', 'ns/token stored'], blockRows],
  ];
  for (const [title, head, rows] of sections) {
    process.stdout.write(`\nGrowth in process: ${title}\n\n${table(head, rows)}\n`);
  }
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    measure: { type: 'string' },
    value: { type: 'string' },
  },
});
if (values.measure !== undefined) {
  process.send(MEASURES[values.measure](values.value), () => process.disconnect());
} else {
  const sizes = values.quick ? LIVE.slice(0, 2) : LIVE;
  const live = [];
  for (const blocks of sizes) live.push(...(await measureApart('live', blocks)));
  const figures = { live };
  for (const name of ['ranks', 'events', 'blocks']) figures[name] = await measureApart(name);
  print(figures);
  process.send?.(figures);
}
