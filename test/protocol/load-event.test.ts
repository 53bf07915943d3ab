import { expect, test } from 'vitest';
import { LoadEventEncoder } from '../../src/protocol/load-event.ts';
import { readJsonLines } from '../support/vectors.ts';

interface LoadVector {
  readonly plane: 'nats' | 'zmq';
  readonly worker_id: string;
  readonly publisher_id: string;
  readonly dp_rank: number;
  readonly active_decode_blocks: number | null;
  readonly kv_used_blocks: string | null;
  readonly published_at: number;
  readonly envelope?: string;
  readonly frames?: readonly string[];
}

const vectors = readJsonLines<LoadVector>('dynamo/load.jsonl');

/** The envelope without what the ZMQ plane puts before it. */
function capturedEnvelope({ envelope, frames }: LoadVector): string | undefined {
  return envelope ?? frames?.[3]?.slice(10);
}

test.each(['nats', 'zmq'])('load events are those of the real publisher on %s', (plane) => {
  const captured = vectors.filter((vector) => vector.plane === plane);
  const first = captured[0] as LoadVector;
  const encoder = new LoadEventEncoder(BigInt(first.worker_id), Number(first.publisher_id));
  const envelopes = captured.map((vector) =>
    encoder
      .encode(
        {
          dpRank: vector.dp_rank,
          activeDecodeBlocks: vector.active_decode_blocks,
          kvUsedBlocks: vector.kv_used_blocks === null ? null : Number(vector.kv_used_blocks),
        },
        vector.published_at,
      )
      .envelope.toString('hex'),
  );
  expect(envelopes).toHaveLength(6);
  expect(envelopes).toEqual(captured.map(capturedEnvelope));
});

test.each([
  [7n, '07'],
  [200n, 'ccc8'],
  [65_535n, 'cdffff'],
  [0xffff_ffffn, 'ceffffffff'],
  [0x1_0000_0000n, 'cf0000000100000000'],
  [0xffff_ffff_ffff_ffffn, 'cfffffffffffffffff'],
])('worker id %d is an unsigned integer in its smallest form', (workerId, bytes) => {
  const event = { dpRank: 0, activeDecodeBlocks: null, kvUsedBlocks: 1 };
  const { envelope } = new LoadEventEncoder(workerId, 1).encode(event, 1);
  expect(envelope.toString('hex')).toContain(`a9776f726b65725f6964${bytes}a764705f72616e6b`);
});
