/**
 * An index of 1,000,000 blocks: bytes of memory a block, and how long a dump takes and holds the event loop.
 *
 *   node bench/index-size.mjs [--blocks N]
 *
 * Each shape runs in a process of its own, since the kernel's memory never shrinks. Run by
 * `npm run bench`; prints a table, a parent process gets the figures as a message.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  arena,
  kernelBytesTaken,
  LocalIndexer,
  PlacementEvent,
  Publisher,
  RelayMetrics,
  U64List,
} from '../dist/index.js';
import { table } from './report.mjs';

/** How a million blocks come: blocks of an event, whether it goes on where another ended, the tier. */
const SHAPES = {
  'chains of 512': { eventBlocks: 512, tier: 'device' },
  'decode, block by block': { eventBlocks: 1, grows: 64, tier: 'device' },
  'a prompt of 32, then 8 each': { eventBlocks: 8, prompt: 32, tier: 'device' },
  'single roots': { eventBlocks: 1, tier: 'device' },
  'a lower tier': { eventBlocks: 64, tier: 'host_pinned' },
};

let seed = 1n;
function nextHash() {
  seed = (seed * 6364136223846793005n + 1442695040888963407n) & 0xffff_ffff_ffff_ffffn;
  return seed;
}

function stored(parent, hashes, tier) {
  arena.reset();
  const tokens = U64List.of(...hashes.map((hash) => hash ^ 0x5555n));
  const event = new PlacementEvent('stored', 0, tier, U64List.of(...hashes), tokens, 0);
  event.hasParent = parent !== null;
  event.parentLow = Number(BigInt.asIntN(32, parent ?? 0n));
  event.parentHigh = Number(BigInt.asIntN(32, (parent ?? 0n) >> 32n));
  return event;
}

function fill(index, blocks, { eventBlocks, grows, prompt, tier }) {
  let parent = null;
  const fresh = (count) => Array.from({ length: count }, nextHash);
  if (prompt !== undefined) {
    const hashes = fresh(prompt);
    index.apply(stored(null, hashes, tier));
    parent = hashes.at(-1);
  }
  for (let step = 0; index.size < blocks; step++) {
    const hashes = fresh(Math.min(eventBlocks, blocks - index.size));
    const isNew = grows === undefined ? prompt === undefined : step % grows === 0;
    index.apply(stored(isNew ? null : parent, hashes, tier));
    if (grows !== undefined) parent = hashes.at(-1);
  }
}

/** Longest time that a timer of 1 ms was late. */
function watchLoop() {
  let last = performance.now();
  let longestMs = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last - 1);
    last = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return Math.max(longestMs, performance.now() - last - 1);
  };
}

async function measure(name, blocks) {
  const bounds = { maxBlocks: 10_000_000, maxEvents: 16_384, maxBytes: 32 << 20 };
  const indexer = new LocalIndexer(
    { publisher: new Publisher({ workerId: 42n }), ...bounds },
    new RelayMetrics(),
  );
  const before = kernelBytesTaken();
  const startMs = performance.now();
  fill(indexer.blocks, blocks, SHAPES[name]);
  const fillMs = performance.now() - startMs;
  const bytesPerBlock = Math.round((kernelBytesTaken() - before) / blocks);
  const loop = watchLoop();
  const dumpStart = performance.now();
  const { byteCount, events } = await indexer.dump();
  const dumpMs = performance.now() - dumpStart;
  return {
    shape: name,
    blocks: indexer.blocks.size,
    bytesPerBlock,
    fillNsPerBlock: Math.round((fillMs * 1e6) / blocks),
    dumpMs: Math.round(dumpMs),
    longestSliceMs: Math.round(loop()),
    dumpedEvents: events.count,
    dumpedMiB: Math.round(byteCount / 2 ** 20),
  };
}

function measureApart(name, blocks) {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['--shape', name, '--blocks', `${blocks}`]);
    child.once('message', resolve);
    child.once('error', reject);
    child.once('exit', (code) => code !== 0 && reject(new Error(`${name}: exit code ${code}`)));
  });
}

const { values } = parseArgs({
  options: { blocks: { type: 'string', default: '1000000' }, shape: { type: 'string' } },
});
const blocks = Number(values.blocks);
if (values.shape !== undefined) {
  process.send(await measure(values.shape, blocks));
} else {
  const results = [];
  for (const name of Object.keys(SHAPES)) results.push(await measureApart(name, blocks));
  process.stdout.write(`\nAn index of ${blocks.toLocaleString('en')} blocks\n\n`);
  const columns = [
    ['bytes/block', ({ bytesPerBlock }) => bytesPerBlock],
    ['ns/block to store', ({ fillNsPerBlock }) => fillNsPerBlock],
    ['ms to dump', ({ dumpMs }) => dumpMs],
    ['longest hold, ms', ({ longestSliceMs }) => longestSliceMs],
    ['events', ({ dumpedEvents }) => dumpedEvents],
    ['MiB', ({ dumpedMiB }) => dumpedMiB],
  ];
  const rows = results.map((result) => [result.shape, ...columns.map(([, of]) => of(result))]);
  process.stdout.write(`${table(['shape', ...columns.map(([title]) => title)], rows)}\n`);
  process.send?.(results);
}
