/**
 * BLAKE3, plain hashing to 32 bytes: what LMCache names its chunks by.
 *
 * In/out   bytes of any length; 32 bytes. Pure; some MB a second, which is enough for chunks.
 * Source   the BLAKE3 specification, section 2, and its published test vectors.
 */

const IV = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);
const PERMUTATION = Uint8Array.of(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8);
/** Which word of the block each mix of a round takes. */
const SCHEDULE = schedule(7);
const BLOCK_BYTES = 64;
const CHUNK_BYTES = 1024;
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;

const state = new Uint32Array(16);

export function blake3(input: Uint8Array): Uint8Array {
  const words = outputOf(input, 0, ROOT);
  const hash = Buffer.alloc(32);
  for (let index = 0; index < 8; index++) hash.writeUInt32LE(words[index] as number, index * 4);
  return hash;
}

/** Chaining value of the subtree over `input`, whose first chunk has number `chunk`. */
function outputOf(input: Uint8Array, chunk: number, flags: number): Uint32Array {
  if (input.length <= CHUNK_BYTES) return chunkOf(input, chunk, flags);
  // The left part is the largest power of two of chunks that leaves something on the right.
  const chunks = Math.ceil(input.length / CHUNK_BYTES);
  const left = 2 ** Math.floor(Math.log2(chunks - 1));
  const at = left * CHUNK_BYTES;
  const block = new Uint32Array(16);
  block.set(outputOf(input.subarray(0, at), chunk, 0));
  block.set(outputOf(input.subarray(at), chunk + left, 0), 8);
  return compress(IV, block, 0, BLOCK_BYTES, PARENT | flags);
}

function chunkOf(input: Uint8Array, chunk: number, flags: number): Uint32Array {
  let value: Uint32Array = IV;
  const block = new Uint32Array(16);
  const bytes = new Uint8Array(block.buffer);
  const blocks = Math.max(1, Math.ceil(input.length / BLOCK_BYTES));
  for (let index = 0; index < blocks; index++) {
    const part = input.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
    bytes.fill(0);
    bytes.set(part);
    const start = index === 0 ? CHUNK_START : 0;
    const end = index === blocks - 1 ? CHUNK_END | flags : 0;
    value = compress(value, block, chunk, part.length, start | end);
  }
  return value;
}

function compress(
  value: Uint32Array,
  block: Uint32Array,
  counter: number,
  length: number,
  flags: number,
): Uint32Array {
  state.set(value.subarray(0, 8));
  state.set(IV.subarray(0, 4), 8);
  state[12] = counter;
  state[13] = Math.floor(counter / 2 ** 32);
  state[14] = length;
  state[15] = flags;
  for (const words of SCHEDULE) {
    mix(0, 4, 8, 12, block, words, 0);
    mix(1, 5, 9, 13, block, words, 2);
    mix(2, 6, 10, 14, block, words, 4);
    mix(3, 7, 11, 15, block, words, 6);
    mix(0, 5, 10, 15, block, words, 8);
    mix(1, 6, 11, 12, block, words, 10);
    mix(2, 7, 8, 13, block, words, 12);
    mix(3, 4, 9, 14, block, words, 14);
  }
  const next = new Uint32Array(8);
  for (let index = 0; index < 8; index++) {
    next[index] = (state[index] as number) ^ (state[index + 8] as number);
  }
  return next;
}

function mix(
  a: number,
  b: number,
  c: number,
  d: number,
  block: Uint32Array,
  words: Uint8Array,
  at: number,
): void {
  const x = block[words[at] as number] as number;
  const y = block[words[at + 1] as number] as number;
  let p = state[a] as number;
  let q = state[b] as number;
  let r = state[c] as number;
  let s = state[d] as number;
  p = (p + q + x) | 0;
  s = rotated(s ^ p, 16);
  r = (r + s) | 0;
  q = rotated(q ^ r, 12);
  p = (p + q + y) | 0;
  s = rotated(s ^ p, 8);
  r = (r + s) | 0;
  q = rotated(q ^ r, 7);
  state[a] = p;
  state[b] = q;
  state[c] = r;
  state[d] = s;
}

function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function schedule(rounds: number): Uint8Array[] {
  const all = [Uint8Array.from({ length: 16 }, (_, index) => index)];
  while (all.length < rounds) {
    const before = all.at(-1) as Uint8Array;
    all.push(PERMUTATION.map((from) => before[from] as number));
  }
  return all;
}
