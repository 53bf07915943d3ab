/**
 * The frames of one message of a replay, as a DEALER sees them.
 *
 * batch    [0] empty   [1] topic, from vLLM 0.26 and SGLang 0.5.22 on   [2] sequence, u64 BE   [3] payload
 * end      the same with sequence ff × 8, an empty payload, and an empty topic
 * request  [0] empty   [1] start, u64 BE; an engine ignores any other shape without a word
 */
import { type EngineMessage, type FrameFault, readFrames } from './frames.ts';

export type ReplayMessage = EngineMessage | 'end' | 'foreign' | FrameFault;

const EMPTY = Buffer.alloc(0);
const END_MARKER = Buffer.alloc(8, 0xff);

export function replayRequest(start: bigint): [Buffer, Buffer] {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(start);
  return [EMPTY, number];
}

/** `foreign`: a batch of a topic that is not subscribed to. */
export function readReplayFrames(frames: readonly Buffer[], topicPrefix: string): ReplayMessage {
  const [delimiter, ...rest] = frames;
  if (delimiter?.length !== 0 || rest.length < 2 || rest.length > 3) return 'frames';
  const [sequence = EMPTY, payload = EMPTY] = rest.slice(-2);
  if (sequence.equals(END_MARKER) && payload.length === 0) return 'end';
  const topic = rest.length === 3 ? rest[0] : undefined;
  if (topic !== undefined && !topic.toString('latin1').startsWith(latin1(topicPrefix))) {
    return 'foreign';
  }
  return readFrames([topic ?? EMPTY, sequence, payload], 'safe');
}

/** Bytes as characters, so that a prefix is one of bytes, as for the subscription. */
function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
