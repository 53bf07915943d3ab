/** Engine batches as an engine would write them, from plain values. */
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });

/** Three frames: no topic, the sequence number, the payload. */
export function batchFrames(payload: unknown, sequence: bigint | number = 0): Buffer[] {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sequence));
  return [Buffer.alloc(0), number, Buffer.from(packr.pack(payload))];
}

/** One batch of these events for a rank. */
export function batch(events: readonly unknown[], dpRank: number | null = 0): unknown[] {
  return [1.5, events, dpRank];
}

/** Tokens that differ from block to block. */
export function tokensFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}

/** A map-form store of whole blocks of 4 tokens; `fields` replaces and adds. */
export function storeEvent(
  hashes: readonly (number | bigint | Uint8Array)[],
  parent: number | bigint | null = null,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    type: 'BlockStored',
    block_hashes: hashes,
    parent_block_hash: parent,
    token_ids: tokensFrom(100, hashes.length * 4),
    block_size: 4,
    medium: 'GPU',
    ...fields,
  };
}

export function removeEvent(
  hashes: readonly (number | bigint | Uint8Array)[],
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return { type: 'BlockRemoved', block_hashes: hashes, medium: 'GPU', ...fields };
}
