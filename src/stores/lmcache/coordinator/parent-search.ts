/**
 * ParentSearch: which chunk stands before another, where nobody says it.
 *
 * Proof    a chunk's hash is that of its parent's hash and its own tokens, so a candidate is the parent or is not:
 *          nothing is guessed. Candidates are chunks that end where the other begins, the newest first.
 * Gives up for good where nothing has ever matched: LMCache was told another algorithm than blake3, its default.
 * Bounds   candidates a place, places, tries a batch, chunks that are remembered.
 * Source   LMCache 0.5.6, lmcache/v1/multiprocess/token_hasher.py.
 */
import { blake3 } from '@noble/hashes/blake3';

/** What a coordinator batch tells of a chunk's place; the hash in lower-case hex. */
export interface PlacedChunk {
  readonly hashHex: string;
  readonly tokenIds: readonly number[];
  /** Tokens before it; below 0: not told. */
  readonly tokenOffset: number;
}

const MAX_CANDIDATES = 256;
/** Of one batch: a try takes some microseconds. */
const MAX_TRIES = 2048;
const MAX_PLACES = 1024;
const MAX_FOUND = 65_536;
/** Searches in vain from the start on. */
const MAX_VAIN = 256;

export class ParentSearch {
  /** Hashes of chunks by the place behind them, oldest first. */
  readonly #ends = new Map<number, string[]>();
  /** Parents by chunk, in hex; null: none of the candidates of that time. */
  readonly #found = new Map<string, string | null>();
  #hasFound = false;
  #tries = MAX_TRIES;
  #vain = 0;

  beginBatch(): void {
    this.#tries = MAX_TRIES;
  }

  /** Undefined where it is not known. Remembers the chunk as a candidate. */
  parentOf(chunk: PlacedChunk): Uint8Array | undefined {
    const { hashHex, tokenIds, tokenOffset } = chunk;
    if (tokenIds.length === 0 || tokenOffset < 0) return undefined;
    this.#remember(hashHex, tokenOffset + tokenIds.length);
    if (tokenOffset === 0) return undefined;
    // Each rank and group tells of the chunk again.
    let parent = this.#found.get(hashHex);
    if (parent === undefined) {
      parent = this.#search(chunk);
      this.#found.set(hashHex, parent);
      if (this.#found.size > MAX_FOUND) this.#found.delete(firstOf(this.#found));
    }
    return parent === null ? undefined : Buffer.from(parent, 'hex');
  }

  #search({ hashHex, tokenIds, tokenOffset }: PlacedChunk): string | null {
    if (!this.#hasFound && this.#vain >= MAX_VAIN) return null;
    const candidates = this.#ends.get(tokenOffset) ?? [];
    if (candidates.length === 0) return null;
    for (let at = candidates.length - 1; at >= 0 && this.#tries > 0; at--) {
      this.#tries--;
      const candidate = candidates[at] as string;
      if (!isParent(candidate, tokenIds, hashHex)) continue;
      this.#hasFound = true;
      // The start of many sequences stays among the newest.
      this.#remember(candidate, tokenOffset);
      return candidate;
    }
    this.#vain++;
    return null;
  }

  #remember(hashHex: string, end: number): void {
    const known = this.#ends.get(end) ?? [];
    if (known.at(-1) === hashHex) return;
    const rest = known.filter((one) => one !== hashHex).slice(1 - MAX_CANDIDATES);
    // The place that was named longest ago goes first.
    this.#ends.delete(end);
    this.#ends.set(end, [...rest, hashHex]);
    if (this.#ends.size > MAX_PLACES) this.#ends.delete(firstOf(this.#ends));
  }
}

function isParent(parentHex: string, tokenIds: readonly number[], hashHex: string): boolean {
  const parent = Buffer.from(parentHex, 'hex');
  const bytes = Buffer.alloc(parent.length + tokenIds.length * 4);
  parent.copy(bytes);
  for (const [index, tokenId] of tokenIds.entries()) {
    bytes.writeUInt32BE(tokenId, parent.length + index * 4);
  }
  return Buffer.from(blake3(bytes)).toString('hex') === hashHex;
}

function firstOf<Key>(map: ReadonlyMap<Key, unknown>): Key {
  return map.keys().next().value as Key;
}
