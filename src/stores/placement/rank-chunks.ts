/**
 * RankChunks: blocks of chunks that a store holds, as events of one rank.
 *
 * Names    routers find a block of a lower tier by the block before it and its tokens. So each has the name that the
 *          engine of this rank gave the same place on the device tier, and until it has shown that, its sequence hash.
 *          Where a name comes up later, what is placed is removed and stored again under it.
 * Out      one removed or stored event a chunk and storage tier, at the end of the turn, a batch at a time.
 * Cleared  routers forget all tiers of the rank, so what is held is published again.
 * Memory   a batch's lists live in the kernel until the next message of anybody is read.
 */
import { Subject } from 'rxjs';
import { arena } from '../../kernel/arena.ts';
import { U64List } from '../../kernel/u64-list.ts';
import { type PlacementBatch, PlacementEvent } from '../../protocol/placement-event.ts';
import type { StorageTier } from '../../protocol/storage-tier.ts';
import { blockCountOf, type Chunk } from './chunk.ts';
import { SequenceNames } from './sequence-names.ts';

const MAX_BATCH_BLOCKS = 1024;

const NO_WORDS = new Int32Array(0);

/** How routers know a chunk; its names are kept while it is on no tier. */
interface Placed {
  tiers: readonly StorageTier[];
  /** Clears of the rank before it was placed: a further one took it from all tiers. */
  clears: number;
  /** Two words a block; of the block before, or none. */
  names: Int32Array;
  before: Int32Array;
}

export interface RankChunksOptions {
  readonly dpRank: number;
  readonly maxBlocks: number;
  /** Of what the engine's stream announces of them, nothing is to be made. */
  readonly tellsOfChunks: boolean;
  /** Where its blocks are to be seen now. */
  readonly tiersOf: (chunk: Chunk) => readonly StorageTier[];
  readonly chunkAt: (sequenceLow: number, sequenceHigh: number) => Chunk | null;
  readonly nowMs: () => number;
  /** Calls back at the end of this turn. */
  readonly defer: (callback: () => void) => void;
}

export class RankChunks {
  readonly names: SequenceNames;
  readonly tellsOfChunks: boolean;
  readonly placements$: Subject<PlacementBatch> = new Subject();
  /** Blocks that routers are told of, on each tier. */
  placedBlocks = 0;
  readonly #options: RankChunksOptions;
  readonly #placed = new Map<Chunk, Placed>();
  readonly #touched = new Set<Chunk>();
  /** Where the walk over them is. */
  #touchedWalk: Iterator<Chunk> | null = null;
  #clears = 0;
  /** The same over all that were placed before the last clear. */
  #clearedWalk: Iterator<Chunk> | null = null;
  #isDeferred = false;
  #isStopped = false;

  constructor(options: RankChunksOptions) {
    this.#options = options;
    this.names = new SequenceNames(options.maxBlocks);
    this.tellsOfChunks = options.tellsOfChunks;
  }

  /** Looks at the engine's events; changes nothing in them. */
  observe(batch: PlacementBatch): void {
    for (const event of batch) {
      if (event.type === 'cleared') this.#takeClear();
      else if (event.type === 'stored' && event.storageTier === 'device') {
        this.names.show(event, (low, high) => this.#takeName(low, high));
      }
    }
  }

  /** It is held on other tiers from here on, or its place has come to be known. */
  touch(chunk: Chunk): void {
    this.#touched.add(chunk);
    this.#defer();
  }

  /** Whether routers are told of it, or will be told something. */
  isPlaced(chunk: Chunk): boolean {
    return this.#touched.has(chunk) || this.#tiersOf(this.#placed.get(chunk)).length > 0;
  }

  forget(chunk: Chunk): void {
    this.#placed.delete(chunk);
  }

  stop(): void {
    this.#isStopped = true;
    this.#touched.clear();
    this.#clearedWalk = null;
    this.placements$.complete();
  }

  #takeClear(): void {
    this.#clears++;
    this.#clearedWalk = this.#placed.keys();
    this.placedBlocks = 0;
    this.#defer();
  }

  #takeName(low: number, high: number): void {
    const chunk = this.#options.chunkAt(low, high);
    const words = chunk?.sequenceHashes;
    if (chunk === null || words === null || words === undefined) return;
    if (this.#placed.has(chunk)) this.touch(chunk);
    if (words.at(-2) !== low || words.at(-1) !== high) return;
    for (const child of chunk.children) if (this.#placed.has(child)) this.touch(child);
  }

  #defer(): void {
    if (this.#isDeferred || this.#isStopped) return;
    this.#isDeferred = true;
    this.#options.defer(() => {
      this.#isDeferred = false;
      this.#flush();
    });
  }

  /** One batch: whoever calls back sees to it that others have their turn. */
  #flush(): void {
    arena.reset();
    const batch: PlacementBatch = [];
    let blocks = 0;
    let chunk = this.#next();
    while (chunk !== undefined) {
      this.#settle(chunk, batch);
      blocks += Math.max(1, blockCountOf(chunk));
      chunk = blocks < MAX_BATCH_BLOCKS ? this.#next() : undefined;
    }
    if (batch.length > 0) this.placements$.next(batch);
    if (blocks >= MAX_BATCH_BLOCKS) this.#defer();
  }

  /** The chunk that is looked at next. */
  #next(): Chunk | undefined {
    const cleared = this.#clearedWalk?.next();
    if (cleared?.done === false) return cleared.value;
    this.#clearedWalk = null;
    this.#touchedWalk ??= this.#touched.values();
    const { value, done } = this.#touchedWalk.next();
    if (done === true) this.#touchedWalk = null;
    else this.#touched.delete(value);
    return done === true ? undefined : value;
  }

  /** Where routers know it. */
  #tiersOf(placed: Placed | undefined): readonly StorageTier[] {
    return placed === undefined || placed.clears < this.#clears ? [] : placed.tiers;
  }

  /** Appends the events that make the chunk's placement what it should be. */
  #settle(chunk: Chunk, batch: PlacementBatch): void {
    const known = this.#placed.get(chunk);
    const wanted = chunk.sequenceHashes === null ? [] : this.#options.tiersOf(chunk);
    if (known === undefined && wanted.length === 0) return;
    const tiers = this.#tiersOf(known);
    const placed = known ?? { tiers, clears: 0, names: NO_WORDS, before: NO_WORDS };
    const { names: oldNames, before: oldBefore } = placed;
    for (const tier of tiers) {
      if (!wanted.includes(tier)) this.#remove(batch, tier, oldNames);
    }
    placed.tiers = wanted;
    placed.clears = this.#clears;
    this.#placed.set(chunk, placed);
    if (wanted.length === 0) return;
    placed.names = this.#namesOf(chunk.sequenceHashes as Int32Array, oldNames);
    placed.before = this.#nameBefore(chunk, oldBefore);
    const isRenamed = !areEqual(placed.names, oldNames) || !areEqual(placed.before, oldBefore);
    for (const tier of wanted) {
      const isThere = tiers.includes(tier);
      // First the old names: of two blocks at one place routers keep the older.
      if (isThere && isRenamed) this.#remove(batch, tier, oldNames);
      if (!isThere || isRenamed) this.#store(batch, tier, chunk, placed);
    }
  }

  #namesOf(sequenceHashes: Int32Array, oldNames: Int32Array): Int32Array {
    const names = sequenceHashes.slice();
    for (let word = 0; word < names.length; word += 2) {
      const low = names[word] as number;
      const high = names[word + 1] as number;
      if (this.#findName(low, high, oldNames.subarray(word, word + 2))) {
        names[word] = this.names.low;
        names[word + 1] = this.names.high;
      }
    }
    return names;
  }

  /** Of the block before the chunk, by the names that routers are told. */
  #nameBefore({ parent }: Chunk, old: Int32Array): Int32Array {
    if (parent === null) return NO_WORDS;
    const sequence = (parent.sequenceHashes ?? NO_WORDS).slice(-2);
    const ofParent = this.#placed.get(parent)?.names.subarray(-2) ?? old;
    if (!this.#findName(sequence[0] as number, sequence[1] as number, ofParent)) return sequence;
    return Int32Array.of(this.names.low, this.names.high);
  }

  /** The engine's name of a place to `names`: what it calls it, or what it was told to routers as, be that forgotten. */
  #findName(sequenceLow: number, sequenceHigh: number, told: Int32Array): boolean {
    const { names } = this;
    if (names.find(sequenceLow, sequenceHigh)) return true;
    const [low, high] = told;
    if (low === undefined || high === undefined) return false;
    if (!names.isNameOf(low, high, sequenceLow, sequenceHigh)) return false;
    names.low = low;
    names.high = high;
    return true;
  }

  #remove(batch: PlacementBatch, tier: StorageTier, names: Int32Array): void {
    const { dpRank, nowMs } = this.#options;
    batch.push(new PlacementEvent('removed', dpRank, tier, listOf(names), null, nowMs()));
    this.placedBlocks -= names.length / 2;
  }

  #store(batch: PlacementBatch, tier: StorageTier, chunk: Chunk, { names, before }: Placed): void {
    const { dpRank, nowMs } = this.#options;
    const tokens = listOf(chunk.tokensHashes ?? NO_WORDS);
    const event = new PlacementEvent('stored', dpRank, tier, listOf(names), tokens, nowMs());
    event.hasParent = before.length > 0;
    event.parentLow = before[0] ?? 0;
    event.parentHigh = before[1] ?? 0;
    batch.push(event);
    this.placedBlocks += names.length / 2;
  }
}

function listOf(words: Int32Array): U64List {
  const list = new U64List(words.length / 2);
  for (let word = 0; word < words.length; word += 2) {
    list.push(words[word] as number, words[word + 1] as number);
  }
  return list;
}

function areEqual(one: Int32Array, other: Int32Array): boolean {
  return one.length === other.length && one.every((word, index) => word === other[index]);
}
