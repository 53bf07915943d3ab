/**
 * The frames of one engine message.
 *
 * [0] topic     bytes; matched by the subscription and not looked at again
 * [1] sequence  8 bytes, u64 big-endian: one number a message of an engine process
 * [2] payload   MessagePack batch
 */
import { type Compat, diverges } from '../protocol/compat.ts';

export interface EngineMessage {
  readonly sequence: bigint;
  readonly payload: Uint8Array;
  /** Ms on the monotonic clock. */
  readonly arrivedAtMs: number;
}

export type FrameFault = 'frames' | 'sequence';

const SEQUENCE_BYTES = 8;

/** No engine's number: it marks the end of a replay. The real publisher takes it for one all the same. */
const END_MARKER = 2n ** 64n - 1n;

export function readFrames(
  frames: readonly Uint8Array[],
  compat: Compat,
  arrivedAtMs: number = performance.now(),
): EngineMessage | FrameFault {
  const [, sequence, payload] = frames;
  if (frames.length !== 3 || sequence === undefined || payload === undefined) return 'frames';
  if (sequence.length !== SEQUENCE_BYTES) return 'sequence';
  const number = u64At(sequence);
  if (number === END_MARKER && diverges(compat, 'end-marker')) return 'sequence';
  return { sequence: number, payload, arrivedAtMs };
}

/** Big-endian. A DataView for each message would cost more than all that is made of its number. */
function u64At(bytes: Uint8Array): bigint {
  const high = u32At(bytes, 0);
  const low = BigInt(u32At(bytes, 4));
  return high === 0 ? low : (BigInt(high) << 32n) | low;
}

function u32At(bytes: Uint8Array, at: number): number {
  const [a = 0, b = 0, c = 0, d = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
}
