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
  const view = new DataView(sequence.buffer, sequence.byteOffset, SEQUENCE_BYTES);
  const number = view.getBigUint64(0);
  if (number === END_MARKER && diverges(compat, 'end-marker')) return 'sequence';
  return { sequence: number, payload, arrivedAtMs };
}
