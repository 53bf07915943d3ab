/** Tokens hashes of a prompt, as a router asks for them. */
import { TokenList } from '../kernel/token-list.ts';
import type { U64List } from '../kernel/u64-list.ts';
import type { PadTokenIds } from './pad-tokens.ts';
import { hashSeed, namespaceDigest, tokensHashes, wholeBlocks } from './tokens-hash.ts';

export interface Prompt {
  /** u32 each. */
  readonly tokens: readonly number[];
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  /** Images of each block, from the first on; shorter than the prompt where the rest has none. */
  readonly mmHashes: readonly (readonly bigint[])[];
  /** Whether blocks share a token with the next, as EAGLE's do. */
  readonly isEagle: boolean;
}

/** One hash a whole block; the list lives until the next native batch is read. */
export function promptHashes(prompt: Prompt, blockSize: number, padTokenIds: PadTokenIds): U64List {
  const { tokens, loraName, cacheSalt, mmHashes, isEagle } = prompt;
  const list = new TokenList(tokens.length);
  for (const [index, token] of tokens.entries()) list.set(index, token);
  const blockCount = wholeBlocks(tokens.length, blockSize, isEagle);
  const namespace = cacheSalt === null || cacheSalt === '' ? null : namespaceDigest(cacheSalt);
  const mmInfos = mmHashes.map((hashes) => ({
    mmHashes: BigUint64Array.from(hashes),
    offsets: [],
  }));
  return tokensHashes({
    tokens: list,
    blockSize,
    blockCount,
    isEagle,
    seed: hashSeed(loraName, namespace),
    mmInfos: mmInfos.length === 0 ? null : mmInfos,
    padTokenIds,
  });
}
