/**
 * Real requests (traces/README.md) as the events of an engine with a prefix cache.
 *
 * Request  touches its cached prefix and stores the rest of its whole blocks in one event, under the
 *          last cached block; one batch a request, one remove for each evicted block.
 * Evicts   the least recently used leaf, once CAPACITY_TOKENS are held.
 * Blocks   a trace id names 512 tokens and all that is in front of them; tokens are drawn from a
 *          generator that is seeded with the id. What a request generates is not in the trace.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { BatchWriter } from './batch-writer.mjs';
import { seeded } from './seeded.mjs';

const TRACE = new URL('traces/mooncake-conversation.jsonl.gz', import.meta.url);
const TOKENS_AN_ID = 512;
const CAPACITY_TOKENS = 1 << 20;
const VOCABULARY = 150_000;

/** The events of the first `requests` requests; those that find all their blocks cached have none. */
export function traceStream(requests, blockSize) {
  const cache = new PrefixCache(CAPACITY_TOKENS / blockSize);
  const blocksAnId = TOKENS_AN_ID / blockSize;
  const writer = new BatchWriter();
  const stream = [];
  for (const { input_length, hash_ids } of readRequests(requests)) {
    const keys = Array.from({ length: Math.floor(input_length / blockSize) }, (_, block) => {
      return hash_ids[Math.floor(block / blocksAnId)] * blocksAnId + (block % blocksAnId);
    });
    const { cachedCount, evicted } = cache.take(keys);
    const stored = keys.slice(cachedCount);
    if (stored.length === 0) continue;
    writer.start(1 + evicted.length);
    for (const key of evicted) writer.removed(hashOf(key));
    writer.stored(
      stored.map(hashOf),
      cachedCount === 0 ? null : hashOf(keys[cachedCount - 1]),
      stored.flatMap((key) => tokensOf(key, blockSize)),
      blockSize,
    );
    const events = 1 + evicted.length;
    stream.push({ frames: writer.finish(), events, blocks: stored.length + evicted.length });
  }
  return stream;
}

function readRequests(count) {
  const lines = gunzipSync(readFileSync(TRACE)).toString('utf8').split('\n');
  return lines.slice(0, count).map((line) => JSON.parse(line));
}

/** A key's two words come from seeds of their own, so that no two keys share a hash. */
function hashOf(key) {
  return { high: seeded(key)(), low: key };
}

function tokensOf(key, blockSize) {
  const random = seeded(key ^ 0x5bd1_e995);
  return Array.from({ length: blockSize }, () => random() % VOCABULARY);
}

class PrefixCache {
  #capacity;
  /** Least recently used first. A block is always used after those below it, so the first is a leaf. */
  #keys = new Set();

  constructor(capacity) {
    this.#capacity = capacity;
  }

  /** Makes a chain of blocks the last used; how many it held, and what had to go. */
  take(keys) {
    let cachedCount = 0;
    while (cachedCount < keys.length && this.#keys.has(keys[cachedCount])) cachedCount++;
    for (const key of [...keys].reverse()) {
      this.#keys.delete(key);
      this.#keys.add(key);
    }
    const evicted = [];
    for (const key of this.#keys) {
      if (this.#keys.size <= this.#capacity) break;
      this.#keys.delete(key);
      evicted.push(key);
    }
    return { cachedCount, evicted };
  }
}
