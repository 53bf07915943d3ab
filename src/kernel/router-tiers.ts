/**
 * What a router holds of one rank on one tier, in kernel memory: a prefix tree for the device tier, edges
 * for the lower ones. Each call takes a whole event.
 *
 * Owns     kernel memory until `free()`.
 * Size     a device block 16 bytes in its run, which doubles, 26 to 51 for its name, and a share of its
 *          run's node (64, and 26 to 51 for its place); a lower block 32 and 51 to 102.
 * Source   test/vectors/dynamo/router-index.jsonl
 */
import type { EventTemplate, StoreFields } from './encode-buffer.ts';
import { KernelMemoryError, resultAddress, views, wasm } from './kernel.ts';
import { keysAddress, listKeys, lookAhead, looksAhead, type NamedBlocks } from './look-ahead.ts';
import type { U64List } from './u64-list.ts';

/** Most bytes of one event that a dump writes. */
export const MAX_DUMP_EVENT_BYTES: number = 1024 * 57 + 1024;

/** A router forgets removed blocks every five minutes; here the oldest go beyond this, or a quarter of all. */
const RETAINED_BLOCKS = 65_536;

/** Where a match goes on: at the root, or after the block of `low`, `high`. */
export interface MatchCursor {
  isRoot: boolean;
  low: number;
  high: number;
}

/** A part of a dump: `bytes` from the start of its room hold `events`. */
export interface DumpPart {
  readonly bytes: number;
  readonly events: number;
}

export interface RouterTier {
  /** Blocks held. */
  readonly size: number;
  /** Applies a store of at most `maxBlocks` in all; returns how many blocks that kept out. */
  store(event: StoreFields, tokensHashes: U64List, maxBlocks: number): number;
  /** Reads where the first block of each event is held, and what it follows on. */
  lookAhead(events: readonly NamedBlocks[]): void;
  remove(hashes: U64List): void;
  clear(): void;
  /** Ends the tier's life; nothing may be called after it. */
  free(): void;
  /** Blocks of `tokensHashes` from `start` on that follow on `cursor`, which moves behind them. */
  match(tokensHashes: U64List, start: number, cursor: MatchCursor): number;
  /** Sets the one dump of this tier to its begin. */
  startDump(): void;
  /** Writes the dump's next events to kernel memory, `MAX_DUMP_EVENT_BYTES` or more of it. */
  dumpPart(address: number, bytes: number, options: DumpOptions): DumpPart;
  readonly dumpHasEnded: boolean;
}

export interface DumpOptions {
  readonly template: EventTemplate;
  readonly firstEventId: number;
  readonly dpRank: number;
}

/** The device tier: a block is held as long as all before it are. */
export class DeviceTree implements RouterTier {
  readonly #tree: number;

  /** `retainedBlocks` that are no longer held keep their places, as in a router until its next sweep. */
  constructor(retainedBlocks: number = RETAINED_BLOCKS) {
    this.#tree = handleOf(wasm.newTree(retainedBlocks));
  }

  get size(): number {
    return views.u32[(this.#tree >>> 2) + 3] as number;
  }

  /** Blocks in memory, held or not. */
  get keptBlocks(): number {
    return views.u32[(this.#tree >>> 2) + 4] as number;
  }

  store(event: StoreFields, tokensHashes: U64List, maxBlocks: number): number {
    const { blockHashes, hasParent, parentLow, parentHigh } = event;
    const refused = wasm.treeStore(
      this.#tree,
      hasParent ? 1 : 0,
      parentLow,
      parentHigh,
      blockHashes.address,
      tokensHashes.address,
      blockHashes.length,
      maxBlocks,
    );
    views.refresh();
    return refused;
  }

  lookAhead(events: readonly NamedBlocks[]): void {
    if (!looksAhead()) return;
    wasm.treeLookAhead(this.#tree, keysAddress, listKeys(events, true));
  }

  remove(hashes: U64List): void {
    wasm.treeRemove(this.#tree, hashes.address, hashes.length);
    views.refresh();
  }

  clear(): void {
    wasm.treeClear(this.#tree);
    views.refresh();
  }

  free(): void {
    wasm.freeTree(this.#tree);
  }

  match(tokensHashes: U64List, start: number, cursor: MatchCursor): number {
    const address = tokensHashes.address + start * 8;
    const count = wasm.treeMatch(this.#tree, address, tokensHashes.length - start, resultAddress);
    if (count > 0) moveCursor(cursor);
    return count;
  }

  startDump(): void {
    if (wasm.startTreeDump(this.#tree) === 0) throw noRoom();
    views.refresh();
  }

  dumpPart(address: number, bytes: number, options: DumpOptions): DumpPart {
    return dumpPart(wasm.dumpTree, this.#tree, address, bytes, options);
  }

  get dumpHasEnded(): boolean {
    return wasm.treeDumpEnded(this.#tree) !== 0;
  }
}

/** A lower tier: each block stands for itself. */
export class EdgeTier implements RouterTier {
  readonly #tier: number;

  constructor() {
    this.#tier = handleOf(wasm.newTier());
  }

  get size(): number {
    const blocks = views.u32[this.#tier >>> 2] as number;
    return views.u32[blocks >>> 2] as number;
  }

  store(event: StoreFields, tokensHashes: U64List, maxBlocks: number): number {
    const { blockHashes, hasParent, parentLow, parentHigh } = event;
    const refused = wasm.tierStore(
      this.#tier,
      hasParent ? 1 : 0,
      parentLow,
      parentHigh,
      blockHashes.address,
      tokensHashes.address,
      blockHashes.length,
      maxBlocks,
    );
    views.refresh();
    return refused;
  }

  lookAhead(events: readonly NamedBlocks[]): void {
    lookAhead(views.u32[this.#tier >>> 2] as number, events);
  }

  remove(hashes: U64List): void {
    wasm.tierRemove(this.#tier, hashes.address, hashes.length);
  }

  clear(): void {
    wasm.clearTier(this.#tier);
  }

  free(): void {
    wasm.freeTier(this.#tier);
  }

  match(tokensHashes: U64List, start: number, cursor: MatchCursor): number {
    const count = wasm.tierMatch(
      this.#tier,
      cursor.isRoot ? 0 : 1,
      cursor.low,
      cursor.high,
      tokensHashes.address + start * 8,
      tokensHashes.length - start,
      resultAddress,
    );
    if (count > 0) moveCursor(cursor);
    return count;
  }

  startDump(): void {
    wasm.startTierDump(this.#tier);
  }

  dumpPart(address: number, bytes: number, options: DumpOptions): DumpPart {
    return dumpPart(wasm.dumpTier, this.#tier, address, bytes, options);
  }

  get dumpHasEnded(): boolean {
    return wasm.tierDumpEnded(this.#tier) !== 0;
  }
}

function moveCursor(cursor: MatchCursor): void {
  cursor.isRoot = false;
  cursor.low = views.i32[resultAddress >>> 2] as number;
  cursor.high = views.i32[(resultAddress >>> 2) + 1] as number;
}

function dumpPart(
  write: typeof wasm.dumpTree,
  handle: number,
  address: number,
  bytes: number,
  { template, firstEventId, dpRank }: DumpOptions,
): DumpPart {
  const { address: parts } = template;
  const high = Math.floor(firstEventId / 2 ** 32);
  const end = write(handle, parts, address, address + bytes, firstEventId, high, dpRank) >>> 0;
  return { bytes: end - address, events: wasm.dumpedEvents() };
}

function handleOf(address: number): number {
  views.refresh();
  if (address === 0) throw noRoom();
  return address >>> 0;
}

function noRoom(): KernelMemoryError {
  return new KernelMemoryError('No room for an index in kernel memory');
}
