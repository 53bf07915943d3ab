/**
 * Seeded engine streams, as frames ready to send: `{frames, events, blocks}` for each batch; `last`, in the first two,
 * is the hash of the last block that it stores, which no other block has.
 *
 * decode     256 sequences; a step stores one block for each of 16 of them, under its true parent; a
 *            full sequence is evicted, last block first, and starts anew
 * prefill    each batch stores one prompt of 128 blocks as a chain; old prompts are evicted
 * trace-16   real requests through a prefix cache (trace-stream.mjs), blocks of 16 tokens
 * trace-512  the same, blocks of 512 tokens
 *
 * Blocks of 16 tokens in the first three.
 */
import { BatchWriter } from './batch-writer.mjs';
import { seeded } from './seeded.mjs';
import { traceStream } from './trace-stream.mjs';

const BLOCK_SIZE = 16;
const SEQUENCES = 256;
const EVENTS_A_STEP = 16;
const BLOCKS_A_SEQUENCE = 64;
const PROMPT_BLOCKS = 128;
const PROMPTS_HELD = 64;

function tools(seed) {
  const random = seeded(seed);
  return {
    random,
    hash: () => ({ high: random(), low: random() }),
    tokens: (count) => Array.from({ length: count }, () => random() % 150_000),
  };
}

export function decodeStream(batches, seed = 1) {
  const { random, hash, tokens } = tools(seed);
  const sequences = Array.from({ length: SEQUENCES }, () => []);
  // Sequences are of different ages, so that evictions are spread over the stream.
  const limits = sequences.map(() => 8 + (random() % BLOCKS_A_SEQUENCE));
  const writer = new BatchWriter();
  const stream = [];
  for (let step = 0; step < batches; step++) {
    const first = (step * EVENTS_A_STEP) % SEQUENCES;
    const evicted = [];
    for (let i = first; i < first + EVENTS_A_STEP; i++) {
      if (sequences[i].length < limits[i]) continue;
      evicted.push(...sequences[i].reverse());
      sequences[i] = [];
      limits[i] = BLOCKS_A_SEQUENCE;
    }
    writer.start(EVENTS_A_STEP + evicted.length);
    for (const block of evicted) writer.removed(block);
    for (let i = first; i < first + EVENTS_A_STEP; i++) {
      const stored = hash();
      writer.stored([stored], sequences[i].at(-1) ?? null, tokens(BLOCK_SIZE), BLOCK_SIZE);
      sequences[i].push(stored);
    }
    const events = EVENTS_A_STEP + evicted.length;
    const last = sequences[first + EVENTS_A_STEP - 1].at(-1);
    stream.push({ frames: writer.finish(), events, blocks: events, last });
  }
  return stream;
}

export function prefillStream(batches, seed = 2) {
  const { hash, tokens } = tools(seed);
  const prompts = [];
  const writer = new BatchWriter();
  const stream = [];
  for (let step = 0; step < batches; step++) {
    const evicted = prompts.length === PROMPTS_HELD ? prompts.shift().reverse() : [];
    const prompt = Array.from({ length: PROMPT_BLOCKS }, hash);
    writer.start(1 + evicted.length);
    for (const block of evicted) writer.removed(block);
    writer.stored(prompt, null, tokens(PROMPT_BLOCKS * BLOCK_SIZE), BLOCK_SIZE);
    prompts.push([...prompt]);
    stream.push({
      frames: writer.finish(),
      events: 1 + evicted.length,
      blocks: PROMPT_BLOCKS + evicted.length,
      last: prompt.at(-1),
    });
  }
  return stream;
}

/** `size` is batches (of a trace: requests) of a whole run, `quick` of a short one. */
const STREAMS = {
  decode: { blockSize: BLOCK_SIZE, size: 36_000, quick: 4000, make: decodeStream },
  prefill: { blockSize: BLOCK_SIZE, size: 8000, quick: 800, make: prefillStream },
  'trace-16': { blockSize: 16, size: 1500, quick: 300, make: (n) => traceStream(n, 16) },
  'trace-512': { blockSize: 512, size: 1500, quick: 300, make: (n) => traceStream(n, 512) },
};

export const STREAM_NAMES = Object.keys(STREAMS);

/** `count` is of batches, or of requests, in place of what a run has. */
export function createStream(name, isQuick, count = null) {
  const { blockSize, size, quick, make } = STREAMS[name];
  const batches = make(count ?? (isQuick ? quick : size));
  const sum = (of) => batches.reduce((total, batch) => total + of(batch), 0);
  return {
    name,
    blockSize,
    batches,
    events: sum((batch) => batch.events),
    blocks: sum((batch) => batch.blocks),
    bytes: sum((batch) => batch.frames[2].length),
  };
}

/** Names the block that ends an end-to-end run; no generator above draws it. */
const END_HASH = { high: 0xe0d0_e0d0, low: 0xe0d0_e0d1 };

/** As it stands on the wire, engine side and router side alike. */
export const END_BYTES = Buffer.from('e0d0e0d0e0d0e0d1', 'hex');

/** The frames of the batch that ends a run: one root block with that hash. */
export function endFrames(sequence, blockSize) {
  const writer = new BatchWriter(sequence);
  writer.start(1);
  writer.stored([END_HASH], null, new Array(blockSize).fill(1), blockSize);
  return writer.finish();
}
