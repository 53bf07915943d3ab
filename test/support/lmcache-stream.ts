/** Messages of LMCache's KV event stream: as recorded from a real server, and made for tests. */
import { pack } from 'msgpackr';
import { readJsonLines } from './vectors.ts';

export interface StreamCapture {
  readonly case: string;
  readonly frames_hex: readonly string[];
  readonly decoded: {
    readonly kind: string;
    readonly parts?: readonly (string | number)[];
    readonly uid?: number;
    readonly payload?: unknown;
  };
}

export const streamCaptures: readonly StreamCapture[] = readJsonLines<StreamCapture>(
  'engines/lmcache-0.5.6.jsonl',
).filter((capture) => capture.decoded.kind.startsWith('rpc-'));

export function framesOf({ frames_hex }: StreamCapture): Buffer[] {
  return frames_hex.map((frame) => Buffer.from(frame, 'hex'));
}

export interface BatchFields {
  readonly enabled?: boolean;
  readonly incarnation?: bigint;
  readonly next_cursor?: number;
  readonly lost?: boolean;
  readonly events?: readonly object[];
}

/** Above 2^53, as nanoseconds of the wall clock are. */
export const INCARNATION = 1_796_014_122_600_488_925n;

export function batchPayload(fields: BatchFields = {}): Buffer {
  return pack({
    enabled: true,
    incarnation: INCARNATION,
    next_cursor: 0,
    lost: false,
    events: [],
    ...fields,
  });
}

export function storedRecord(
  seq: number,
  hash: Uint8Array,
  parentHash: Uint8Array | null,
  tokenIds: readonly number[],
  model = 'm',
): object {
  return {
    seq,
    kind: 'stored',
    medium: 'CPU',
    model_name: model,
    block_hashes: [hash],
    parent_block_hash: parentHash,
    token_ids: tokenIds,
  };
}

export function removedRecord(seq: number, hashes: readonly Uint8Array[], model = 'm'): object {
  return {
    seq,
    kind: 'removed',
    medium: 'CPU',
    model_name: model,
    block_hashes: hashes,
    parent_block_hash: null,
    token_ids: [],
  };
}
