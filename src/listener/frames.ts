/**
 * The frames of one engine message.
 *
 * [0] topic     bytes; matched by the subscription and not looked at again
 * [1] sequence  8 bytes, u64 big-endian: one number a message of an engine process
 * [2] payload   MessagePack batch
 */
export interface EngineMessage {
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

export type FrameFault = 'frames' | 'sequence';

const SEQUENCE_BYTES = 8;

export function readFrames(frames: readonly Uint8Array[]): EngineMessage | FrameFault {
  const [, sequence, payload] = frames;
  if (frames.length !== 3 || sequence === undefined || payload === undefined) return 'frames';
  if (sequence.length !== SEQUENCE_BYTES) return 'sequence';
  const view = new DataView(sequence.buffer, sequence.byteOffset, SEQUENCE_BYTES);
  return { sequence: view.getBigUint64(0), payload };
}
