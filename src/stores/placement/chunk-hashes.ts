/**
 * Hashes of a chunk's blocks, as plain words that outlive a message: two signed ones a block.
 *
 * Salt     LMCache has what the engine was given. Dynamo's frontends put a namespace behind PREFIX there; anything else
 *          is the namespace itself.
 */
import { SequenceHasher } from '../../hashing/sequence-hash.ts';
import { hashSeed, namespaceDigest, textHashes } from '../../hashing/tokens-hash.ts';
import { arena } from '../../kernel/arena.ts';
import { TokenList } from '../../kernel/token-list.ts';

const PREFIX = 'dynamo-cache-salt:';

/** Of the whole blocks; gives up all lists of the message before. */
export function tokensHashesOf(
  tokenIds: ArrayLike<number>,
  blockSize: number,
  salt: string,
): Int32Array {
  arena.reset();
  const tokens = new TokenList(tokenIds.length);
  for (let index = 0; index < tokenIds.length; index++) {
    tokens.set(index, tokenIds[index] as number);
  }
  const blockCount = Math.floor(tokenIds.length / blockSize);
  const namespace = salt.startsWith(PREFIX) ? salt.slice(PREFIX.length) : salt;
  const seed = hashSeed(null, namespace === '' ? null : namespaceDigest(namespace));
  const hashes = textHashes(tokens, blockSize, blockCount, false, seed);
  const words = new Int32Array(blockCount * 2);
  for (let block = 0; block < blockCount; block++) {
    words[block * 2] = hashes.lowAt(block);
    words[block * 2 + 1] = hashes.highAt(block);
  }
  return words;
}

/** Of blocks that follow on the last one of `before`; on nothing where that is null. */
export function sequenceHashesOf(tokensHashes: Int32Array, before: Int32Array | null): Int32Array {
  arena.reset();
  const hasher = new SequenceHasher();
  if (before !== null) {
    hasher.startBehind(before.at(-2) as number, before.at(-1) as number);
  }
  const words = new Int32Array(tokensHashes.length);
  for (let word = 0; word < words.length; word += 2) {
    hasher.push(tokensHashes[word] as number, tokensHashes[word + 1] as number);
    words[word] = hasher.low;
    words[word + 1] = hasher.high;
  }
  return words;
}
