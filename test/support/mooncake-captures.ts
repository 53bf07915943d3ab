/** What a real Mooncake master sent and answered, as recorded. */
import { readJsonLines } from './vectors.ts';

export interface MooncakeCapture {
  readonly case: string;
  readonly frames_hex: readonly string[];
  readonly decoded: {
    readonly kind: 'live' | 'nothing' | 'http-status' | 'http-answer';
    readonly seq?: number;
    readonly path?: string;
    readonly status?: number;
    readonly payload: unknown;
  };
}

export type CapturedEvent = Readonly<Record<string, unknown>>;
export type CapturedMessage = readonly [number, readonly CapturedEvent[], number];

const mooncakeCaptures: readonly MooncakeCapture[] = readJsonLines<MooncakeCapture>(
  'engines/mooncake-0.3.14.jsonl',
);

export const liveCaptures: readonly MooncakeCapture[] = mooncakeCaptures.filter(
  ({ decoded }) => decoded.kind === 'live',
);

/** Of a case, or of all messages of a case that has several. */
export function capturesOf(name: string): readonly MooncakeCapture[] {
  return mooncakeCaptures.filter((one) => one.case === name || one.case.startsWith(`${name}#`));
}

export function payloadOf({ frames_hex }: MooncakeCapture): Buffer {
  return Buffer.from(frames_hex[2] ?? '', 'hex');
}

export function messageOf({ decoded }: MooncakeCapture): CapturedMessage {
  return decoded.payload as CapturedMessage;
}
