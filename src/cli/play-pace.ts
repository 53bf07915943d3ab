/** What a player needs to know of a message: when it is due, its rank, whether it is left out. */
import { unpack } from 'msgpackr';
import { MsgpackCursor } from '../engines/msgpack-cursor.ts';

/** Behind by more than this, it was suspended: it goes on from here, instead of hurrying after. */
const MAX_LATE_MS = 1000;

/** Pace: how long each message has to wait for its time. */
export class Pace {
  readonly #rate: number | null;
  #startMs: number | null = null;
  #index = 0;

  constructor(rate: number | null) {
    this.#rate = rate;
  }

  waitMs(atMs: number): number {
    if (this.#rate === 0) return 0;
    const dueMs = this.#rate === null ? atMs : (this.#index++ * 1000) / this.#rate;
    const nowMs = performance.now();
    this.#startMs ??= nowMs - dueMs;
    const waitMs = this.#startMs + dueMs - nowMs;
    if (waitMs < -MAX_LATE_MS) this.#startMs -= waitMs;
    return waitMs;
  }
}

/** The rank that a batch [time, events, rank] names; null where it names none. */
export function rankOf(payload: Uint8Array): number | null {
  const cursor = new MsgpackCursor();
  try {
    cursor.open(payload);
    if (cursor.openArray() < 3) return null;
    cursor.skip();
    cursor.skip();
    if (!cursor.isInteger()) return null;
    const start = cursor.position;
    cursor.skip();
    const rank: unknown = unpack(payload.subarray(start, cursor.position));
    return typeof rank === 'number' ? rank : null;
  } catch {
    // Damaged: it is played as it is.
    return null;
  }
}

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
