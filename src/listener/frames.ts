/**
 * The frames of one engine message.
 *
 * [0] topic     bytes; matched by the subscription and not looked at again
 * [1] sequence  8 bytes, u64 big-endian: one number a message of an engine process
 * [2] payload   MessagePack batch
 */
import type { WireMessage } from '../connections/zmtp/frame-reader.ts';
import { type Compat, diverges } from '../protocol/compat.ts';

export interface EngineMessage {
  readonly sequence: bigint;
  /** Of a live message, it lasts until the next payload has been passed on; see ownMessage. */
  readonly payload: Uint8Array;
  /** Ms on the monotonic clock. */
  readonly arrivedAtMs: number;
}

/** The message with bytes of its own, for whoever keeps it. */
export function ownMessage(message: EngineMessage): EngineMessage {
  return { ...message, payload: new Uint8Array(message.payload) };
}

export type FrameFault = 'frames' | 'sequence';

const FRAMES = 3;
const SEQUENCE_BYTES = 8;
const EMPTY = new Uint8Array(0);

/** No engine's number: it marks the end of a replay. The real publisher takes it for one all the same. */
const END_MARKER = 2n ** 64n - 1n;

export function readFrames(
  frames: readonly Uint8Array[],
  compat: Compat,
  arrivedAtMs: number = performance.now(),
): EngineMessage | FrameFault {
  const [, number = EMPTY, payload = EMPTY] = frames;
  const sequence = sequenceOf(frames.length, number, 0, number.length, compat);
  return typeof sequence === 'string' ? sequence : { sequence, payload, arrivedAtMs };
}

/** The same of a message that lies in a slab: its payload is a view. */
export function readWireMessage(
  message: WireMessage,
  compat: Compat,
  arrivedAtMs: number,
): EngineMessage | FrameFault {
  const { slab, frameCount, secondAt, secondLength, thirdAt, thirdLength } = message;
  const { bytes } = slab;
  const sequence = sequenceOf(frameCount, bytes, secondAt, secondLength, compat);
  if (typeof sequence === 'string') return sequence;
  return { sequence, payload: bytes.subarray(thirdAt, thirdAt + thirdLength), arrivedAtMs };
}

/** The number of a message of so many frames, at `at` in `bytes`. */
function sequenceOf(
  frameCount: number,
  bytes: Uint8Array,
  at: number,
  length: number,
  compat: Compat,
): bigint | FrameFault {
  if (frameCount !== FRAMES) return 'frames';
  if (length !== SEQUENCE_BYTES) return 'sequence';
  const sequence = u64At(bytes, at);
  return sequence === END_MARKER && diverges(compat, 'end-marker') ? 'sequence' : sequence;
}

/** Big-endian. A DataView for each message would cost more than all that is made of its number. */
function u64At(bytes: Uint8Array, at: number): bigint {
  const high = u32At(bytes, at);
  const low = BigInt(u32At(bytes, at + 4));
  return high === 0 ? low : (BigInt(high) << 32n) | low;
}

function u32At(bytes: Uint8Array, at: number): number {
  const a = bytes[at] ?? 0;
  const b = bytes[at + 1] ?? 0;
  const c = bytes[at + 2] ?? 0;
  const d = bytes[at + 3] ?? 0;
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
}
