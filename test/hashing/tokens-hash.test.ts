import { expect, test } from 'vitest';
import {
  hashSeed,
  namespaceDigest,
  tokensHashes,
  wholeBlocks,
} from '../../src/hashing/tokens-hash.ts';
import { arena } from '../../src/kernel/arena.ts';
import { TokenList } from '../../src/kernel/token-list.ts';
import { readJsonLines } from '../support/vectors.ts';

interface HashVector {
  name: string;
  tokens: number[];
  block_size: number;
  block_mm_infos: ({ mm_objects: { mm_hash: string }[] } | null)[] | null;
  lora_name: string | null;
  is_eagle: boolean | null;
  cache_namespace: string | null;
  hashes: string[];
}

const vectors = readJsonLines<HashVector>('dynamo/hash.jsonl');

function hashesOf(vector: HashVector): string[] {
  arena.reset();
  const isEagle = vector.is_eagle === true;
  const namespace = vector.cache_namespace;
  return tokensHashes({
    tokens: TokenList.of(...vector.tokens),
    blockSize: vector.block_size,
    blockCount: wholeBlocks(vector.tokens.length, vector.block_size, isEagle),
    isEagle,
    seed: hashSeed(vector.lora_name, namespace ? namespaceDigest(namespace) : null),
    mmInfos:
      vector.block_mm_infos?.map((info) =>
        info === null
          ? null
          : {
              mmHashes: BigUint64Array.from(info.mm_objects, (object) => BigInt(object.mm_hash)),
              offsets: [],
            },
      ) ?? null,
    padTokenIds: { imageTokenId: null, videoTokenId: null },
  })
    .toBigInts()
    .map(String);
}

test.each(vectors)('$name hashes as the real publisher does', (vector) => {
  expect(hashesOf(vector)).toEqual(vector.hashes);
});

test('the vectors cover every input length class of XXH3', () => {
  const bytes = new Set(vectors.map((vector) => vector.block_size * 4));
  expect([...bytes].some((length) => length <= 16)).toBe(true);
  expect([...bytes].some((length) => length > 240)).toBe(true);
  expect(vectors.length).toBeGreaterThan(200);
});
