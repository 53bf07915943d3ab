/**
 * ChunkTable: the chunks that are held, what their tokens are, and where in a sequence they stand.
 *
 * Place    of a chunk is known once its parent's is: it waits for that, and for its tokens.
 * Unheld   ones stay a while, as parents of others; one that a kept chunk follows on does not go.
 * Conflict a hash that comes with other tokens or another parent means nothing any more, nor what follows on it: any
 *          number may, so that they go a portion at a time.
 * Bounds   blocks (a chunk without tokens counts as one), chunks that are not held. Then the oldest unheld gives way.
 */
import { blockCountOf, type Chunk } from './chunk.ts';
import { sequenceHashesOf } from './chunk-hashes.ts';
import { ChunkQueue } from './chunk-queue.ts';
import { Orphans } from './orphans.ts';
import { U64Map } from './u64-map.ts';

const MAX_UNHELD = 65_536;
/** Chunks looked at for one that may give way. */
const MAX_LOOKED = 64;

export type ChunkWait = 'tokens' | 'parent';

export interface ChunkTableOptions {
  readonly maxBlocks: number;
  /** Where its blocks stand is known from here on, or means nothing any more. */
  readonly onPlace: (chunk: Chunk) => void;
  /** It follows on a chunk whose tokens end within a block, and is refused. */
  readonly onMisaligned: (chunk: Chunk) => void;
  /** False where routers are still told of it. */
  readonly mayDrop: (chunk: Chunk) => boolean;
  readonly onDrop: (chunk: Chunk) => void;
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (callback: () => void) => void;
}

export class ChunkTable {
  readonly waiting: Record<ChunkWait, number> = { tokens: 0, parent: 0 };
  blocks = 0;
  /** Chunks that were not held and have given way. */
  forgotten = 0;
  readonly #options: ChunkTableOptions;
  readonly #chunks = new Map<string, Chunk>();
  readonly #byNumber = new Map<number, Chunk>();
  /** Oldest first. */
  readonly #unheld = new Set<Chunk>();
  /** Goes on where it ended, as none is left before it: from the start it would pass all that are gone. */
  #oldest = this.#unheld.values();
  /** Chunks whose parent's place is not known. */
  readonly #orphans: Orphans;
  readonly #refusals: ChunkQueue;
  /** Sequence hash → number of the chunk that has the block. */
  readonly #places = new U64Map();
  #nextNumber = 1;

  constructor(options: ChunkTableOptions) {
    this.#options = options;
    this.#refusals = new ChunkQueue({
      defer: options.defer,
      onTurn: (chunk) => this.refuse(chunk),
    });
    this.#orphans = new Orphans({
      defer: options.defer,
      onTurn: (chunk) => {
        if (this.get(chunk.key) === chunk) this.#settle(chunk);
      },
    });
  }

  get size(): number {
    return this.#chunks.size;
  }

  get(key: string): Chunk | null {
    return this.#chunks.get(key) ?? null;
  }

  all(): Iterable<Chunk> {
    return this.#chunks.values();
  }

  /** The chunk with a block at this place; null where none is known. */
  at(sequenceLow: number, sequenceHigh: number): Chunk | null {
    const entry = this.#places.find(sequenceLow, sequenceHigh);
    return entry < 0 ? null : (this.#byNumber.get(this.#places.valueLow(entry)) ?? null);
  }

  /** A new chunk without tokens; null where there is no room. */
  add(hashKey: string, salt: string): Chunk | null {
    if (!this.#makeRoom(1)) return null;
    const chunk: Chunk = {
      key: keyOf(hashKey, salt),
      hashKey,
      salt,
      number: this.#nextNumber++,
      holders: 0,
      tokensHashes: null,
      sequenceHashes: null,
      parentKey: undefined,
      parent: null,
      children: new Set(),
      isPartial: false,
      isRefused: false,
    };
    this.#chunks.set(chunk.key, chunk);
    this.#byNumber.set(chunk.number, chunk);
    this.#unheld.add(chunk);
    this.blocks++;
    return chunk;
  }

  setHolders(chunk: Chunk, holders: number): void {
    this.#count(chunk, -1);
    chunk.holders = holders;
    this.#count(chunk, 1);
    this.#unheld.delete(chunk);
    if (holders !== 0) return;
    this.#unheld.add(chunk);
    // When it comes again it may be with tokens, or find room.
    if (chunk.isRefused && chunk.tokensHashes === null) this.#drop(chunk);
    if (this.#unheld.size > MAX_UNHELD) this.#dropOldest();
  }

  /** What the chunk holds, told for the first time; false where there is no room. */
  setTokens(
    chunk: Chunk,
    tokensHashes: Int32Array,
    parentKey: string | null | undefined,
    isPartial: boolean,
  ): boolean {
    const blocks = tokensHashes.length / 2;
    if (!this.#makeRoom(blocks - 1)) return false;
    this.blocks += blocks - 1;
    this.#count(chunk, -1);
    Object.assign(chunk, { tokensHashes, parentKey, isPartial });
    this.#count(chunk, 1);
    this.#settle(chunk);
    return true;
  }

  /** Of one whose tokens are known. */
  setParent(chunk: Chunk, parentKey: string | null): void {
    chunk.parentKey = parentKey;
    this.#settle(chunk);
  }

  /** Nothing is made of it any more, nor, in a while, of what follows on it. */
  refuse(chunk: Chunk): void {
    if (chunk.isRefused) return;
    this.#count(chunk, -1);
    chunk.isRefused = true;
    this.#forgetPlaces(chunk);
    this.#options.onPlace(chunk);
    // They stay its children: nobody can be placed behind them and be missed.
    for (const child of chunk.children) this.#refusals.push(child);
  }

  /** Gives the chunk its place; those that wait for it get theirs in a while. */
  #settle(chunk: Chunk): void {
    if (this.#place(chunk)) this.#orphans.release(chunk);
  }

  #place(chunk: Chunk): boolean {
    const { tokensHashes, parentKey } = chunk;
    if (tokensHashes === null || parentKey === undefined || chunk.isRefused) return false;
    const parent = parentKey === null ? null : this.get(parentKey);
    if (parentKey !== null && (parent === null || parent.sequenceHashes === null)) {
      this.#orphans.wait(parentKey, chunk);
      return false;
    }
    if (parent?.isPartial) {
      this.refuse(chunk);
      this.#options.onMisaligned(chunk);
      return false;
    }
    this.#count(chunk, -1);
    chunk.sequenceHashes = sequenceHashesOf(tokensHashes, parent?.sequenceHashes ?? null);
    chunk.parent = parent;
    parent?.children.add(chunk);
    for (let word = 0; word < chunk.sequenceHashes.length; word += 2) {
      const { sequenceHashes: words } = chunk;
      this.#places.set(words[word] as number, words[word + 1] as number, chunk.number, 0);
    }
    this.#options.onPlace(chunk);
    return true;
  }

  #makeRoom(blocks: number): boolean {
    for (let looked = 0; this.blocks + blocks > this.#options.maxBlocks; looked++) {
      if (looked === MAX_LOOKED || !this.#dropOldest()) return false;
    }
    return true;
  }

  /** False where none may go. */
  #dropOldest(): boolean {
    let looked = 0;
    while (this.#unheld.size > 0 && looked < MAX_LOOKED) {
      const { value: chunk } = this.#oldest.next();
      if (chunk === undefined) {
        this.#oldest = this.#unheld.values();
        continue;
      }
      looked++;
      if (chunk.children.size === 0 && this.#options.mayDrop(chunk)) {
        this.#drop(chunk);
        this.forgotten++;
        return true;
      }
      // Behind the others: it is looked at again once they have been.
      this.#unheld.delete(chunk);
      this.#unheld.add(chunk);
    }
    return false;
  }

  #drop(chunk: Chunk): void {
    this.#unheld.delete(chunk);
    this.#chunks.delete(chunk.key);
    this.#byNumber.delete(chunk.number);
    this.blocks -= Math.max(1, blockCountOf(chunk));
    this.#forgetPlaces(chunk);
    chunk.parent?.children.delete(chunk);
    this.#orphans.forget(chunk);
    this.#options.onDrop(chunk);
  }

  #forgetPlaces(chunk: Chunk): void {
    const words = chunk.sequenceHashes ?? new Int32Array(0);
    for (let word = 0; word < words.length; word += 2) {
      const low = words[word] as number;
      const high = words[word + 1] as number;
      if (this.at(low, high) === chunk || this.at(low, high) === null)
        this.#places.delete(low, high);
    }
    chunk.sequenceHashes = null;
  }

  /** Adds to what it waits for, if it is held and waits. */
  #count(chunk: Chunk, count: 1 | -1): void {
    if (chunk.holders === 0 || chunk.isRefused || chunk.sequenceHashes !== null) return;
    this.waiting[chunk.tokensHashes === null ? 'tokens' : 'parent'] += count;
  }
}

/** Of latin1 bytes of the hash: a salt has none of these bytes. */
export function keyOf(hashKey: string, salt: string): string {
  return `${salt}\0${hashKey}`;
}
