/**
 * Tokens hashes: what a router computes from a request's tokens, computed here from an engine's.
 *
 * In/out   token ids cut into windows of blockSize (Eagle: one more, overlapping) → one u64 a block.
 * Hash     XXH3-64 over LE u32 tokens, then LE u64 image hashes in ascending order; block-local, the
 *          parent is not mixed in. Seed 1337 + XXH3(adapter, 0) + XXH3(namespace, 1), wrapping.
 * Source   ai-dynamo/dynamo 1.6.1, compute_block_hash_for_seq.
 */
import { views, wasm } from '../kernel/kernel.ts';
import type { TokenList } from '../kernel/token-list.ts';
import { U64List } from '../kernel/u64-list.ts';
import { addU64, digest, digestAt, type U64Words } from '../kernel/xxh3.ts';
import type { MmInfo } from '../protocol/multimodal.ts';
import { foldPadTokens, type PadTokenIds } from './pad-tokens.ts';

const BASE_SEED: U64Words = { low: 1337, high: 0 };
const ADAPTER_SEED = 0;
const NAMESPACE_SEED = 1;

/** More texts than one worker serves; beyond it the cache starts anew. */
const MAX_CACHED_DIGESTS = 1024;

/** Digests of adapter names and cache namespaces, which repeat from event to event. */
class DigestCache {
  readonly #seedLow: number;
  readonly #digests = new Map<string, U64Words>();

  constructor(seedLow: number) {
    this.#seedLow = seedLow;
  }

  of(text: string): U64Words {
    let words = this.#digests.get(text);
    if (words === undefined) {
      if (this.#digests.size >= MAX_CACHED_DIGESTS) this.#digests.clear();
      words = digest(text, this.#seedLow);
      this.#digests.set(text, words);
    }
    return words;
  }
}

const adapters = new DigestCache(ADAPTER_SEED);
const namespaces = new DigestCache(NAMESPACE_SEED);

/** What a cache namespace (a salt) adds to the seed; equal digests make equal tokens hashes. */
export function namespaceDigest(namespace: string): U64Words {
  return namespaces.of(namespace);
}

/** Seed for one event's blocks; an empty adapter name is none. */
export function hashSeed(loraName: string | null, namespace: U64Words | null): U64Words {
  let seed = BASE_SEED;
  if (loraName !== null && loraName !== '') seed = addU64(seed, adapters.of(loraName));
  if (namespace !== null) seed = addU64(seed, namespace);
  return seed;
}

/** Tokens a window needs from its start: one more than the block where windows overlap. */
function windowTokens(blockSize: number, isEagle: boolean): number {
  return isEagle ? blockSize + 1 : blockSize;
}

/** Number of whole blocks in `tokenCount` tokens. */
export function wholeBlocks(tokenCount: number, blockSize: number, isEagle: boolean): number {
  const windows = isEagle ? tokenCount - 1 : tokenCount;
  return Math.max(0, Math.floor(windows / blockSize));
}

export interface TokensHashInput {
  readonly tokens: TokenList;
  readonly blockSize: number;
  readonly blockCount: number;
  readonly isEagle: boolean;
  readonly seed: U64Words;
  /** Image data a block; null where no block has any. */
  readonly mmInfos: readonly (MmInfo | null)[] | null;
  readonly padTokenIds: PadTokenIds;
}

/** One hash a block, of blocks without images. The tokens must suffice for `blockCount` windows. */
export function textHashes(
  tokens: TokenList,
  blockSize: number,
  blockCount: number,
  isEagle: boolean,
  seed: U64Words,
): U64List {
  const hashes = U64List.pooled(blockCount);
  wasm.hashWindows(
    tokens.address,
    windowTokens(blockSize, isEagle) * 4,
    blockSize * 4,
    blockCount,
    seed.low,
    seed.high,
    hashes.address,
  );
  return hashes;
}

/** One hash a block. The tokens must suffice for `blockCount` windows. */
export function tokensHashes(input: TokensHashInput): U64List {
  const { tokens, blockSize, blockCount, isEagle, seed, mmInfos } = input;
  const hashes = textHashes(tokens, blockSize, blockCount, isEagle, seed);
  if (mmInfos !== null) rehashBlocksWithImages(input, mmInfos, hashes);
  return hashes;
}

function rehashBlocksWithImages(
  { tokens, blockSize, blockCount, isEagle, seed, padTokenIds }: TokensHashInput,
  mmInfos: readonly (MmInfo | null)[],
  hashes: U64List,
): void {
  const length = windowTokens(blockSize, isEagle);
  for (let block = 0; block < blockCount; block++) {
    const mmHashes = mmInfos[block]?.mmHashes;
    if (mmHashes === undefined || mmHashes.length === 0) continue;
    const window = tokens.window(block * blockSize, length, mmHashes.length * 2);
    if (!foldPadTokens(window, mmHashes, padTokenIds)) appendSorted(window, mmHashes);
    const hash = digestAt(window.address, window.length * 4, seed);
    const word = (hashes.address >>> 2) + block * 2;
    views.u32[word] = hash.low;
    views.u32[word + 1] = hash.high;
  }
}

function appendSorted(window: TokenList, mmHashes: BigUint64Array): void {
  for (const hash of mmHashes.slice().sort()) {
    window.set(window.length, Number(hash & 0xffff_ffffn));
    window.set(window.length + 1, Number(hash >> 32n));
    window.length += 2;
  }
}
