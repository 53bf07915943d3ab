/**
 * Seeded engine streams, as frames ready to send.
 *
 * decode   256 sequences; a step stores one block for each of 16 of them, under its true parent; a full
 *          sequence is evicted, last block first, and starts anew
 * prefill  each batch stores one prompt of 128 blocks as a chain; old prompts are evicted
 *
 * Blocks of 16 tokens, array events with the tail of a hybrid engine: what vLLM 0.22 sends.
 */

/** Deterministic 32-bit generator (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

class Writer {
  #buffer = Buffer.alloc(1 << 16);
  #length = 0;

  take() {
    const bytes = Buffer.from(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
    return bytes;
  }

  byte(value) {
    if (this.#length + 16 > this.#buffer.length) {
      this.#buffer = Buffer.concat([this.#buffer, Buffer.alloc(this.#buffer.length)]);
    }
    this.#buffer[this.#length++] = value;
  }

  array(count) {
    if (count < 16) this.byte(0x90 | count);
    else for (const value of [0xdc, count >> 8, count & 255]) this.byte(value);
  }

  text(value) {
    this.byte(0xa0 | value.length);
    for (let i = 0; i < value.length; i++) this.byte(value.charCodeAt(i));
  }

  u32(value) {
    if (value < 128) this.byte(value);
    else if (value < 65536) for (const v of [0xcd, value >> 8, value & 255]) this.byte(v);
    else {
      this.byte(0xce);
      for (let shift = 24; shift >= 0; shift -= 8) this.byte((value >>> shift) & 255);
    }
  }

  hash({ high, low }) {
    this.byte(0xcf);
    for (const word of [high, low]) {
      for (let shift = 24; shift >= 0; shift -= 8) this.byte((word >>> shift) & 255);
    }
  }

  nil() {
    this.byte(0xc0);
  }

  time() {
    this.byte(0xcb);
    for (let i = 0; i < 8; i++) this.byte(i === 0 ? 0x41 : 0);
  }
}

function writeStored(writer, hashes, parent, tokens) {
  writer.array(12);
  writer.text('BlockStored');
  writer.array(hashes.length);
  for (const hash of hashes) writer.hash(hash);
  if (parent === null) writer.nil();
  else writer.hash(parent);
  writer.array(tokens.length);
  for (const token of tokens) writer.u32(token);
  writer.u32(BLOCK_SIZE);
  writer.nil();
  writer.text('GPU');
  writer.nil();
  writer.nil();
  writer.u32(0);
  writer.text('full_attention');
  writer.nil();
}

function writeRemoved(writer, hashes) {
  writer.array(4);
  writer.text('BlockRemoved');
  writer.array(hashes.length);
  for (const hash of hashes) writer.hash(hash);
  writer.text('GPU');
  writer.u32(0);
}

function frames(writer, sequence) {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sequence));
  return [Buffer.alloc(0), number, writer.take()];
}

export const BLOCK_SIZE = 16;
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

/** `{frames, events, blocks}` for each batch. */
export function decodeStream(batches, seed = 1) {
  const { random, hash, tokens } = tools(seed);
  const sequences = Array.from({ length: SEQUENCES }, () => []);
  // Sequences are of different ages, so that evictions are spread over the stream.
  const limits = sequences.map(() => 8 + (random() % BLOCKS_A_SEQUENCE));
  const writer = new Writer();
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
    writer.array(3);
    writer.time();
    writer.array(EVENTS_A_STEP + evicted.length);
    for (const block of evicted) writeRemoved(writer, [block]);
    for (let i = first; i < first + EVENTS_A_STEP; i++) {
      const stored = hash();
      writeStored(writer, [stored], sequences[i].at(-1) ?? null, tokens(BLOCK_SIZE));
      sequences[i].push(stored);
    }
    writer.u32(0);
    const events = EVENTS_A_STEP + evicted.length;
    stream.push({ frames: frames(writer, step), events, blocks: events });
  }
  return stream;
}

export function prefillStream(batches, seed = 2) {
  const { hash, tokens } = tools(seed);
  const prompts = [];
  const writer = new Writer();
  const stream = [];
  for (let step = 0; step < batches; step++) {
    const evicted = prompts.length === PROMPTS_HELD ? prompts.shift().reverse() : [];
    const prompt = Array.from({ length: PROMPT_BLOCKS }, hash);
    writer.array(3);
    writer.time();
    writer.array(1 + evicted.length);
    for (const block of evicted) writeRemoved(writer, [block]);
    writeStored(writer, prompt, null, tokens(PROMPT_BLOCKS * BLOCK_SIZE));
    writer.u32(0);
    prompts.push([...prompt]);
    stream.push({
      frames: frames(writer, step),
      events: 1 + evicted.length,
      blocks: PROMPT_BLOCKS + evicted.length,
    });
  }
  return stream;
}
