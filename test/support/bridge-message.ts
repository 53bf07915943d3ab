/** Messages of LMCache's bridge, as frames. */
import { pack } from 'msgpackr';

export type BridgeEvent = readonly [
  type: string,
  timestamp: number,
  sessionId: string,
  metadata: Readonly<Record<string, unknown>>,
];

export function bridgeFrames(
  sequence: number,
  events: readonly BridgeEvent[],
  { sentAt = 1000 + sequence, ...status }: Readonly<Record<string, unknown>> = {},
): Buffer[] {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sequence));
  // A float, as a clock has it: msgpackr would send a whole number as an integer.
  const at = Number(sentAt) + 0.5;
  return [Buffer.alloc(0), number, pack([at, events, { lmcache: '0.5.6', ...status }])];
}

export function requestStart(session: string, at = 1000): BridgeEvent {
  return ['mp.request.start', at, session, {}];
}
