/**
 * ParentSearch: which chunk stands before another, where nobody says it.
 *
 * Proof    a chunk's hash is that of its parent's hash and its own tokens, so a candidate is the parent or is not:
 *          nothing is guessed. Candidates are chunks that end where the other begins, the newest first.
 * Gives up for good where nothing has ever matched: LMCache was told another algorithm than blake3, its default.
 * Bounds   candidates a place, places, bytes hashed a post, chunks that are remembered. What a post leaves no room for is
 *          looked for when the chunk is told again, and so is what had no parent then where candidates have come since.
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
/** Of one post, as it is read in one turn of the event loop: some hundredths of a second. */
const MAX_HASHED_BYTES = 2 << 20;
/** What a try of a short chunk takes as long as. */
const MIN_TRY_BYTES = 1024;
const MAX_PLACES = 1024;
const MAX_FOUND = 65_536;
/** Searches in vain from the start on. */
const MAX_VAIN = 256;

export class ParentSearch {
  /** Hashes of chunks by the place behind them, oldest first. */
  readonly #ends = new Map<number, string[]>();
  /** Parents by chunk, in hex. */
  readonly #found = new Map<string, string>();
  /** Newest candidate by chunk, of those among which no parent was. */
  readonly #missed = new Map<string, string>();
  #hasFound = false;
  #hashableBytes = MAX_HASHED_BYTES;
  #vain = 0;

  beginPost(): void {
    this.#hashableBytes = MAX_HASHED_BYTES;
  }

  /** Undefined where it is not known. Remembers the chunk as a candidate. */
  parentOf(chunk: PlacedChunk): Uint8Array | undefined {
    const { hashHex, tokenIds, tokenOffset } = chunk;
    if (tokenIds.length === 0 || tokenOffset < 0) return undefined;
    this.#remember(hashHex, tokenOffset + tokenIds.length);
    if (tokenOffset === 0) return undefined;
    // Each rank and group tells of the chunk again.
    const parent = this.#found.get(hashHex) ?? this.#search(chunk);
    return parent === null ? undefined : Buffer.from(parent, 'hex');
  }

  #search({ hashHex, tokenIds, tokenOffset }: PlacedChunk): string | null {
    if (!this.#hasFound && this.#vain >= MAX_VAIN) return null;
    const candidates = this.#ends.get(tokenOffset) ?? [];
    const newest = candidates.at(-1);
    if (newest === undefined || this.#missed.get(hashHex) === newest) return null;
    const tryBytes = Math.max(MIN_TRY_BYTES, tokenIds.length * 4);
    for (let at = candidates.length - 1; at >= 0; at--) {
      if (this.#hashableBytes < tryBytes) return null;
      this.#hashableBytes -= tryBytes;
      const candidate = candidates[at] as string;
      if (!isParent(candidate, tokenIds, hashHex)) continue;
      this.#hasFound = true;
      setBounded(this.#found, hashHex, candidate);
      this.#missed.delete(hashHex);
      // The start of many sequences stays among the newest.
      this.#remember(candidate, tokenOffset);
      return candidate;
    }
    this.#vain++;
    setBounded(this.#missed, hashHex, newest);
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

/** The oldest goes where there are too many. */
function setBounded(map: Map<string, string>, key: string, value: string): void {
  map.set(key, value);
  if (map.size > MAX_FOUND) map.delete(firstOf(map));
}

function firstOf<Key>(map: ReadonlyMap<Key, unknown>): Key {
  return map.keys().next().value as Key;
}
