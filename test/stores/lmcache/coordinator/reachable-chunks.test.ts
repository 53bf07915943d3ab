/** Which chunks of coordinator batches routers are told of: those that the worker's own server can load. */

import { blake3 } from '@noble/hashes/blake3';
import { expect, test } from 'vitest';
import { ReachableChunks } from '../../../../src/stores/lmcache/coordinator/reachable-chunks.ts';
import { type WireFields, wireBatch, wireEntry } from '../../../support/cache-batches.ts';
import { CoordinatorTrial } from '../../../support/coordinator-trial.ts';
import { ChunkTrial } from '../../placement/chunk-trial.ts';

const POOL = { tier: 'l2', backend: 's3', shared: true };
const OTHER = { instance_id: 'mp-2' };

/** `tokens` of a sequence that begins with them. */
const entry = (chunk: string, tokens: readonly number[], more: WireFields = {}): WireFields =>
  wireEntry(chunk, { model_name: 'm', token_ids: tokens, token_offset: 0, ...more });
const store = (seq: number, one: WireFields, fields: WireFields = {}): WireFields =>
  wireBatch(seq, { entries: [one], ...fields });
const remove = (seq: number, one: WireFields, fields: WireFields = {}): WireFields =>
  store(seq, one, { event_type: 'delete', ...fields });

function reachOf({ placements }: ChunkTrial): ReachableChunks {
  return new ReachableChunks({ instanceId: 'mp-1', model: 'm', placements });
}

class Reach {
  readonly chunks = new ChunkTrial();
  readonly trial = new CoordinatorTrial({
    chunks: reachOf(this.chunks),
  });

  take(...batches: readonly WireFields[]): void {
    this.trial.take(...batches);
    this.chunks.turn();
  }

  /** Blocks on the host and on disk. */
  match(tokens: readonly number[], salt: string | null = null): readonly [number, number] {
    const { host_pinned, disk } = this.chunks.match(tokens, salt);
    return [host_pinned, disk];
  }
}

test("what the worker's server holds is placed by its tier, by salt, until its last compartment lets go", () => {
  const reach = new Reach();
  const a = entry('a', [1, 2, 3, 4]);
  reach.take(store(1, a), store(2, a, { backend: 'gds' }));
  expect(reach.match([1, 2, 3, 4])).toEqual([2, 0]);
  expect(reach.match([1, 2, 3, 4], 't')).toEqual([0, 0]);
  reach.take(store(3, entry('a', [], { token_offset: -1 }), { tier: 'l2', backend: 'fs' }));
  reach.take(remove(4, a));
  expect(reach.match([1, 2, 3, 4])).toEqual([2, 0]);
  reach.take(remove(5, a, { backend: 'gds' }));
  // A router counts a block in the first tier in which it finds it.
  expect(reach.match([1, 2, 3, 4])).toEqual([0, 2]);
  reach.take(remove(6, a, { tier: 'l2', backend: 'fs' }));
  expect(reach.match([1, 2, 3, 4])).toEqual([0, 0]);
});

test('two ranks hold one chunk', () => {
  const reach = new Reach();
  const ranks = [1, 2].map((kv_rank) => entry('a', [1, 2], { kv_rank }));
  reach.take(wireBatch(1, { entries: ranks }));
  reach.take(remove(2, ranks[0] as WireFields));
  expect(reach.match([1, 2])).toEqual([1, 0]);
  reach.take(remove(3, ranks[1] as WireFields));
  expect(reach.match([1, 2])).toEqual([0, 0]);
});

test('what other servers hold themselves is out of reach', () => {
  const reach = new Reach();
  reach.take(store(1, entry('a', [1, 2]), OTHER), store(2, entry('b', [3, 4]), OTHER));
  expect([reach.match([1, 2]), reach.match([3, 4])]).toEqual([
    [0, 0],
    [0, 0],
  ]);
  expect(reach.trial.held()).toHaveLength(2);
});

test('a pool is within reach once the own server names it, with what others have stored there', () => {
  const reach = new Reach();
  reach.take(store(1, entry('a', [1, 2]), { ...OTHER, ...POOL }));
  expect(reach.match([1, 2])).toEqual([0, 0]);
  reach.take(wireBatch(1, { ...POOL, event_type: 'access' }));
  expect(reach.match([1, 2])).toEqual([0, 1]);
  reach.take(store(2, entry('b', [3, 4]), { ...OTHER, ...POOL }));
  expect(reach.match([3, 4])).toEqual([0, 1]);
  reach.take(remove(3, entry('a', []), { ...OTHER, ...POOL }));
  expect(reach.match([1, 2])).toEqual([0, 0]);
});

test('a gap, a restart and a leave withdraw what they give up', () => {
  const reach = new Reach();
  const both = (seq: number, fields: WireFields = {}): WireFields[] => [
    store(seq, entry('a', [1, 2]), fields),
    store(seq + 1, entry('b', [3, 4]), { ...POOL, ...fields }),
  ];
  const matches = () => [...reach.match([1, 2]), ...reach.match([3, 4])];
  reach.take(...both(1));
  expect(matches()).toEqual([1, 0, 0, 1]);
  reach.take(wireBatch(9));
  expect(matches()).toEqual([0, 0, 0, 0]);
  reach.take(...both(10));
  reach.take(wireBatch(1, { incarnation: 1001 }));
  expect(matches()).toEqual([0, 0, 0, 1]);
  reach.take(...both(2, { incarnation: 1001 }));
  reach.trial.view.leave('mp-1');
  reach.chunks.turn();
  expect(matches()).toEqual([0, 0, 0, 0]);
  // What it still had to say: a worker without its server loads nothing from the pool.
  reach.take(store(4, entry('c', [5, 6]), { ...POOL, incarnation: 1001 }));
  expect([...matches(), ...reach.match([5, 6])]).toEqual([0, 0, 0, 0, 0, 0]);
  reach.trial.view.noteMember('mp-1');
  reach.take(wireBatch(5, { ...POOL, incarnation: 1001, event_type: 'access' }));
  expect(reach.match([5, 6])).toEqual([0, 1]);
  expect(matches()).toEqual([0, 0, 0, 1]);
});

test('keys that found no room, and chunks of other models, are not placed', () => {
  const chunks = new ChunkTrial();
  const trial = new CoordinatorTrial({
    maxHolders: 1,
    chunks: reachOf(chunks),
  });
  trial.take(store(1, entry('a', [1, 2])), store(2, entry('b', [3, 4])));
  chunks.turn();
  expect(chunks.match([1, 2]).host_pinned).toBe(1);
  expect(chunks.match([3, 4]).host_pinned).toBe(0);
  trial.take(remove(3, entry('a', [])), store(4, entry('a', [1, 2], { model_name: 'x' })));
  chunks.turn();
  expect(chunks.match([1, 2]).host_pinned).toBe(0);
  expect(chunks.placements.refused.other_model).toBe(1);
});

test('a whole sequence is placed, as each chunk is proved to follow on the one before it', () => {
  const reach = new Reach();
  const tokens = [1, 2, 3, 4, 5, 6, 7, 8];
  let parent = blake3(Buffer.alloc(12));
  const entries: WireFields[] = [];
  for (let at = 0; at < tokens.length; at += 4) {
    const own = tokens.slice(at, at + 4);
    const packed = Buffer.alloc(16);
    for (const [index, token] of own.entries()) packed.writeUInt32BE(token, index * 4);
    parent = blake3(Buffer.concat([parent, packed]));
    const chunk_hash_hex = Buffer.from(parent).toString('hex');
    entries.push(entry('', own, { chunk_hash_hex, token_offset: at }));
  }
  reach.take(wireBatch(1, { entries }));
  expect(reach.match(tokens)).toEqual([4, 0]);
  reach.take(remove(2, entries[1] as WireFields));
  expect(reach.match(tokens)).toEqual([2, 0]);
});

test('what the event stream of the same server tells without its salt is not placed as if it had none', () => {
  const reach = new Reach();
  const blind = reach.chunks.placements.feed(true);
  const place = { parentHash: null, tokenIds: [1, 2], tokenOffset: 0, tier: 'l1' } as const;
  const stored = { ...place, hash: Buffer.from('a'), model: 'm', salt: '' };
  blind.stored(stored);
  reach.chunks.turn();
  expect(reach.match([1, 2])).toEqual([1, 0]);
  const salted = entry('a', [1, 2], { cache_salt: 't' });
  reach.take(store(1, salted));
  expect([reach.match([1, 2]), reach.match([1, 2], 't')]).toEqual([
    [0, 0],
    [1, 0],
  ]);
  // A gap says nothing of the salt; a deletion does.
  reach.take(store(5, salted), remove(6, salted));
  expect(reach.match([1, 2])).toEqual([1, 0]);
  reach.take(store(7, salted), wireBatch(9));
  expect(reach.match([1, 2])).toEqual([0, 0]);
});
