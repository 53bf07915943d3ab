/** Batches of LMCache's coordinator stream, as its MP servers post them, and as the reader gives them. */
import type { CacheBatch } from '../../src/engines/lmcache/cache-batch.ts';
import { CoordinatorReader } from '../../src/engines/lmcache/coordinator-reader.ts';
import { readJsonLines } from './vectors.ts';

export type WireFields = Readonly<Record<string, unknown>>;

interface Capture {
  readonly case: string;
  readonly frames_hex: readonly string[];
  readonly decoded: { readonly payload: { readonly batches: readonly WireFields[] } };
}

/** Of the real sink of LMCache 0.5.6: the bodies that it posted, in their order. */
export const coordinatorCaptures: readonly Capture[] = readJsonLines<Capture>(
  'lmcache/coordinator-0.5.6.jsonl',
);

export function capturedBody(capture: Capture): Buffer {
  return Buffer.from(capture.frames_hex[0] ?? '', 'hex');
}

/** `chunk` is any text: its hash stands for it. */
export function wireEntry(chunk: string, fields: WireFields = {}): WireFields {
  const { size_bytes = 100, token_ids = [], token_offset = -1, ...key } = fields;
  return {
    key: {
      chunk_hash_hex: Buffer.from(chunk).toString('hex'),
      model_name: 'm1',
      kv_rank: 0,
      object_group_id: 0,
      cache_salt: '',
      ...key,
    },
    size_bytes,
    token_ids,
    token_offset,
  };
}

export function wireBatch(seq: number, fields: WireFields = {}): WireFields {
  return {
    instance_id: 'mp-1',
    incarnation: 1000,
    seq,
    event_type: 'store',
    tier: 'l1',
    backend: 'dram',
    entries: [],
    shared: false,
    ts: 1_796_014_127.5,
    capacity_bytes: 0,
    capacity_revision: 0,
    ...fields,
  };
}

export function bodyOf(...batches: readonly unknown[]): Buffer {
  return Buffer.from(JSON.stringify({ batches }));
}

export function readBatches(...batches: readonly WireFields[]): readonly CacheBatch[] {
  const read = new CoordinatorReader().read(bodyOf(...batches));
  if ('reason' in read) throw new Error(`${read.at}: ${read.message}`);
  return read;
}

/** As an object key shows which chunk it is. */
export function keyOfChunk(chunk: string): string {
  return Buffer.from(chunk).toString('hex');
}
