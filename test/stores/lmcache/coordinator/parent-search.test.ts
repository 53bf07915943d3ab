/** Parents of chunks that say their tokens and place alone. */

import { blake3 } from '@noble/hashes/blake3';
import { expect, test } from 'vitest';
import {
  ParentSearch,
  type PlacedChunk,
} from '../../../../src/stores/lmcache/coordinator/parent-search.ts';

/** As LMCache's token hasher makes it: of the hash before, and the tokens as u32, big-endian. */
function hashOf(parent: Uint8Array, tokenIds: readonly number[]): Uint8Array {
  const tokens = Buffer.alloc(tokenIds.length * 4);
  for (const [index, tokenId] of tokenIds.entries()) tokens.writeUInt32BE(tokenId, index * 4);
  return blake3(Buffer.concat([parent, tokens]));
}

/** Before the first chunk. */
const NONE_HASH = blake3(Buffer.alloc(12));

/** A sequence's chunks of two tokens. */
function chunksOf(...tokens: readonly number[]): PlacedChunk[] {
  const chunks: PlacedChunk[] = [];
  let parent = NONE_HASH;
  for (let at = 0; at < tokens.length; at += 2) {
    const tokenIds = tokens.slice(at, at + 2);
    parent = hashOf(parent, tokenIds);
    chunks.push({ hashHex: Buffer.from(parent).toString('hex'), tokenIds, tokenOffset: at });
  }
  return chunks;
}

const hex = (hash: Uint8Array | undefined): string | null =>
  hash === undefined ? null : Buffer.from(hash).toString('hex');

test('the hash of the real hasher, for two chunks of 256 tokens', () => {
  const tokens = Array.from({ length: 512 }, (_, index) => index);
  const first = hashOf(NONE_HASH, tokens.slice(0, 256));
  expect(hex(first)).toBe('084547b6c40ed5b05ba8cd0305db5bf74d5617673948d9ed193ab7d6cbc484d4');
  expect(hex(hashOf(first, tokens.slice(256)))).toBe(
    'e5ffee45c2b9db326814c9692dc594369887ba3b0df5761817820b60f864c8e0',
  );
});

test('each chunk behind the first one finds the one before it, also among those of other sequences', () => {
  const search = new ParentSearch();
  const [a, b] = [chunksOf(1, 2, 3, 4, 5, 6), chunksOf(1, 2, 7, 8, 9, 10)];
  const parents = [...a, ...b].map((chunk) => hex(search.parentOf(chunk)));
  const hashes = [a, b].map((chunks) => chunks.map(({ hashHex }) => hashHex));
  expect(parents).toEqual([
    null,
    hashes[0]?.[0],
    hashes[0]?.[1],
    null,
    hashes[1]?.[0],
    hashes[1]?.[1],
  ]);
});

test('a chunk told again, by another rank, has the same parent', () => {
  const search = new ParentSearch();
  const [first, second] = chunksOf(1, 2, 3, 4) as [PlacedChunk, PlacedChunk];
  for (let rank = 0; rank < 3; rank++) {
    search.parentOf(first);
    expect(hex(search.parentOf(second))).toBe(first.hashHex);
  }
});

test('where it was not told, or is too long ago, none is known', () => {
  const search = new ParentSearch();
  const [first, second, third] = chunksOf(1, 2, 3, 4, 5, 6) as [
    PlacedChunk,
    PlacedChunk,
    PlacedChunk,
  ];
  expect(search.parentOf(third)).toBeUndefined();
  search.parentOf(first);
  for (let token = 0; token < 256; token++)
    search.parentOf(chunksOf(100 + token, 0)[0] as PlacedChunk);
  expect(search.parentOf(second)).toBeUndefined();
  expect(search.parentOf({ ...second, tokenOffset: -1 })).toBeUndefined();
  expect(search.parentOf({ ...second, tokenIds: [] })).toBeUndefined();
});

test('hashes of another algorithm are soon not tried any more, and tries of a post are bounded', () => {
  const vain = new ParentSearch();
  for (let token = 0; token < 256; token++) {
    vain.parentOf({
      hashHex: `00${token.toString(16).padStart(4, '0')}`,
      tokenIds: [1],
      tokenOffset: 0,
    });
    vain.beginPost();
    vain.parentOf({
      hashHex: `01${token.toString(16).padStart(4, '0')}`,
      tokenIds: [1],
      tokenOffset: 1,
    });
  }
  const [first, second] = chunksOf(1, 2, 3, 4) as [PlacedChunk, PlacedChunk];
  vain.parentOf(first);
  expect(vain.parentOf(second)).toBeUndefined();

  const busy = new ParentSearch();
  for (const chunk of chunksOf(1, 2, 3, 4)) busy.parentOf(chunk);
  for (let token = 0; token < 256; token++)
    busy.parentOf(chunksOf(100 + token, 0)[0] as PlacedChunk);
  const [parent, child] = chunksOf(9, 9, 8, 8) as [PlacedChunk, PlacedChunk];
  for (let token = 0; token < 9; token++) {
    busy.parentOf({
      hashHex: `02${token.toString(16).padStart(2, '0')}`,
      tokenIds: [1],
      tokenOffset: 2,
    });
  }
  busy.parentOf(parent);
  expect(busy.parentOf(child)).toBeUndefined();
  const [next, last] = chunksOf(9, 9, 7, 7) as [PlacedChunk, PlacedChunk];
  busy.beginPost();
  busy.parentOf(next);
  expect(hex(busy.parentOf(last))).toBe(next.hashHex);
});

/** A search that has found a parent before, with `count` others of the newest candidates at place 2. */
function crowded(count: number): ParentSearch {
  const search = new ParentSearch();
  for (const chunk of chunksOf(1, 2, 3, 4)) search.parentOf(chunk);
  for (let token = 0; token < count; token++)
    search.parentOf(chunksOf(100 + token, 0)[0] as PlacedChunk);
  search.beginPost();
  return search;
}

const orphan = (number: number, tokens = 1): PlacedChunk => ({
  hashHex: `03${number.toString(16).padStart(4, '0')}`,
  tokenIds: Array.from({ length: tokens }, () => 1),
  tokenOffset: 2,
});

test.each([
  ['many chunks', 8, 1],
  ['one long chunk', 1, 65_536],
])('what %s left no tries for is found when it is told again', (_, count, tokens) => {
  const search = crowded(255);
  const [parent, child] = chunksOf(9, 9, 8, 8) as [PlacedChunk, PlacedChunk];
  search.parentOf(parent);
  for (let number = 0; number < count; number++) search.parentOf(orphan(number, tokens));
  expect(search.parentOf(child)).toBeUndefined();
  search.beginPost();
  expect(hex(search.parentOf(child))).toBe(parent.hashHex);
});

test('what was left out for want of tries does not count as searched in vain', () => {
  const search = new ParentSearch();
  for (let token = 0; token < 256; token++)
    search.parentOf(chunksOf(100 + token, 0)[0] as PlacedChunk);
  for (let number = 0; number < 1000; number++) search.parentOf(orphan(number));
  search.beginPost();
  const [parent, child] = chunksOf(9, 9, 8, 8) as [PlacedChunk, PlacedChunk];
  search.parentOf(parent);
  expect(hex(search.parentOf(child))).toBe(parent.hashHex);
});

test('a chunk that was told before its parent is found when it is told again', () => {
  const search = crowded(3);
  const [parent, child] = chunksOf(9, 9, 8, 8) as [PlacedChunk, PlacedChunk];
  expect(search.parentOf(child)).toBeUndefined();
  expect(search.parentOf(child)).toBeUndefined();
  search.parentOf(parent);
  expect(hex(search.parentOf(child))).toBe(parent.hashHex);
});
