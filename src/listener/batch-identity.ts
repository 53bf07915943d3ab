/**
 * What tells whether two batches with one number are the same batch: numbers start over with each life
 * of an engine, contents do not.
 */
import { createHash } from 'node:crypto';
import type { EngineMessage } from './frames.ts';

/** Digests kept; a copy that is further behind passes for the same batch. */
const MAX_DIGESTS = 1024;

/** Digests of the batches that left last and may still come a second time, by number. */
export class BatchDigests {
  readonly #digests = new Map<bigint, string>();

  add(sequence: bigint, payload: Uint8Array): void {
    this.#digests.delete(sequence);
    this.#digests.set(sequence, digestOf(payload));
    if (this.#digests.size <= MAX_DIGESTS) return;
    // A Map keeps the order in which its keys were set.
    for (const oldest of this.#digests.keys()) {
      this.#digests.delete(oldest);
      return;
    }
  }

  compare(sequence: bigint, payload: Uint8Array): 'same' | 'other' | 'unknown' {
    const digest = this.#digests.get(sequence);
    if (digest === undefined) return 'unknown';
    return digest === digestOf(payload) ? 'same' : 'other';
  }

  clear(): void {
    this.#digests.clear();
  }
}

function digestOf(payload: Uint8Array): string {
  return createHash('sha1').update(payload).digest('base64');
}

/**
 * Whether `message` shows that the engine is not the one that sent `earlier`: other bytes under the same
 * number, or a later number with an older time.
 */
export function isOfOtherLife(message: EngineMessage, earlier: EngineMessage): boolean {
  if (message.sequence === earlier.sequence) {
    return Buffer.compare(message.payload, earlier.payload) !== 0;
  }
  return timeOf(message.payload) < timeOf(earlier.payload);
}

const FIXARRAY_MASK = 0xf0;
const FIXARRAY = 0x90;
const FLOAT64 = 0xcb;

/** Seconds; NaN where the payload starts otherwise: it is then neither before nor after anything. */
function timeOf(payload: Uint8Array): number {
  const [array = 0, tag] = payload;
  if ((array & FIXARRAY_MASK) !== FIXARRAY || tag !== FLOAT64 || payload.length < 10) {
    return Number.NaN;
  }
  return new DataView(payload.buffer, payload.byteOffset).getFloat64(2);
}
