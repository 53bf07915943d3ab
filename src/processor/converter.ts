/**
 * Converter: an accepted engine event to a placement event.
 *
 * Store    cut into blocks of the configured size; a wrong size or too few tokens end the cutting, what
 *          was cut is kept, be it nothing. A hash that occurs twice, the parent's included, makes the
 *          whole store an empty remove: it breaks a chain and does nothing else.
 * Chunks   (safe) a store on the host tier whose block size is a larger multiple of ours is cut into
 *          blocks of ours; see chunk-cutter.ts. Where they are left to another source, an empty remove is.
 * Owns     the chunks it has cut; lists stay where the reader put them.
 * Source   ai-dynamo/dynamo 1.6.1, zmq_listener.rs; tokens hashes: src/hashing.
 */
import type { PadTokenIds } from '../hashing/pad-tokens.ts';
import { hashSeed, textHashes, tokensHashes, wholeBlocks } from '../hashing/tokens-hash.ts';
import { U64List } from '../kernel/u64-list.ts';
import type { U64Words } from '../kernel/xxh3.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
import type { MmInfo } from '../protocol/multimodal.ts';
import type { RawEvent } from '../protocol/native-batch.ts';
import {
  type PlacementBatch,
  PlacementEvent,
  type PlacementEventType,
} from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';
import { ChunkCutter } from './chunk-cutter.ts';
import { mmInfosOfExtraKeys } from './extra-key-texts.ts';

export interface ConverterOptions extends PadTokenIds {
  /** Tokens a block as the router counts them. */
  readonly blockSize: number;
  readonly compat: Compat;
  /** Bound of chunks whose removal has to be expected. */
  readonly maxTrackedBlocks: number;
  /** Somebody else tells of these chunks: nothing is made of them here. */
  readonly leavesChunks?: boolean;
}

/** What the batch and the filter know about an event. */
export interface EventContext {
  dpRank: number;
  storageTier: StorageTier;
  namespace: U64Words | null;
  arrivedAtMs: number;
}

export class Converter {
  readonly #options: ConverterOptions;
  readonly #chunks: ChunkCutter;

  constructor(options: ConverterOptions) {
    this.#options = options;
    this.#chunks = new ChunkCutter(options.maxTrackedBlocks);
  }

  /** Appends what `event` comes to: one event; removes that were read as one are several where the rank holds chunks. */
  convert(event: RawEvent, context: EventContext, out: PlacementBatch): void {
    if (event.type === 'stored') out.push(this.#convertStored(event, context));
    else if (event.type === 'removed') this.#convertRemoved(event, context, out);
    else out.push(this.clear(context.dpRank, context.arrivedAtMs));
  }

  clear(dpRank: number, arrivedAtMs: number): PlacementEvent {
    this.#chunks.forgetRank(dpRank);
    return new PlacementEvent('cleared', dpRank, 'device', new U64List(0), null, arrivedAtMs);
  }

  free(): void {
    this.#chunks.free();
  }

  #convertRemoved(event: RawEvent, context: EventContext, out: PlacementBatch): void {
    const { dpRank, storageTier } = context;
    const { eventCount } = event;
    const hashes = event.blockHashes ?? new U64List(0);
    const chunks = this.#chunks;
    if (eventCount === 1 || !chunks.hasChunks(dpRank, storageTier)) {
      const blocks = chunks.expandRemoved(dpRank, storageTier, hashes);
      const removed = placement('removed', context, blocks);
      removed.eventCount = eventCount;
      out.push(removed);
      return;
    }
    // A chunk is several blocks: behind this nobody could tell where a remove ends.
    for (let index = 0; index < eventCount; index++) {
      const blocks = chunks.expandRemoved(dpRank, storageTier, hashes.slice(index, 1));
      out.push(placement('removed', context, blocks));
    }
  }

  #convertStored(event: RawEvent, context: EventContext): PlacementEvent {
    const given = event.blockHashes ?? new U64List(0);
    if (given.repeats(event.hasParent, event.parentLow, event.parentHigh)) {
      return placement('removed', context, new U64List(0));
    }
    if (this.#options.leavesChunks && this.#isChunk(event, context.storageTier)) {
      return placement('removed', context, new U64List(0));
    }
    const blockHashes = this.#cut(event, context, given);
    const mmInfos = mmInfosOf(event, blockHashes.length);
    const hashes = this.#tokensHashes(event, blockHashes.length, context.namespace, mmInfos);
    const stored = placement('stored', context, blockHashes, hashes);
    stored.hasParent = event.hasParent;
    stored.parentLow = event.parentLow;
    stored.parentHigh = event.parentHigh;
    stored.mmInfos = mmInfos;
    stored.sessionId = event.sessionId;
    return stored;
  }

  /** The hashes of the whole blocks of our size that the store holds. */
  #cut(event: RawEvent, context: EventContext, hashes: U64List): U64List {
    const { blockSize } = this.#options;
    const { tokens, isEagle } = event;
    const whole = tokens === null ? 0 : wholeBlocks(tokens.length, blockSize, isEagle);
    if (event.blockSize === blockSize) {
      hashes.length = Math.min(hashes.length, whole);
      return hashes;
    }
    if (this.#isChunk(event, context.storageTier)) {
      const factor = event.blockSize / blockSize;
      // A chunk that its tokens do not fill is left out with its hash.
      hashes.length = Math.min(hashes.length, Math.floor(whole / factor));
      const blocks = this.#chunks.cut(context.dpRank, hashes, factor);
      if (blocks !== undefined) return blocks;
    }
    hashes.length = 0;
    return hashes;
  }

  #isChunk(event: RawEvent, storageTier: StorageTier): boolean {
    const { blockSize, compat } = this.#options;
    return (
      diverges(compat, 'chunk') &&
      storageTier === 'host_pinned' &&
      event.medium?.toUpperCase() === 'CPU' &&
      !event.isEagle &&
      event.mmInfos === null &&
      event.extraKeys === null &&
      event.blockSize > blockSize &&
      event.blockSize % blockSize === 0
    );
  }

  #tokensHashes(
    event: RawEvent,
    blockCount: number,
    namespace: U64Words | null,
    mmInfos: (MmInfo | null)[] | null,
  ): U64List {
    if (event.tokens === null || blockCount === 0) return new U64List(0);
    const { tokens, isEagle } = event;
    const { blockSize } = this.#options;
    const seed = hashSeed(event.loraName, namespace);
    if (mmInfos === null) return textHashes(tokens, blockSize, blockCount, isEagle, seed);
    const padTokenIds = this.#options;
    return tokensHashes({ tokens, blockSize, blockCount, isEagle, seed, mmInfos, padTokenIds });
  }
}

function placement(
  type: PlacementEventType,
  { dpRank, storageTier, arrivedAtMs }: EventContext,
  blockHashes: U64List,
  tokens: U64List | null = null,
): PlacementEvent {
  return PlacementEvent.pooled(type, dpRank, storageTier, blockHashes, tokens, arrivedAtMs);
}

/** Exactly one entry a block, null where no block has an image. */
function mmInfosOf(event: RawEvent, blockCount: number): (MmInfo | null)[] | null {
  const given = event.mmInfos ?? mmInfosOfExtraKeys(event.extraKeys);
  if (given === null) return null;
  const mmInfos = Array.from({ length: blockCount }, (_, block) => given[block] ?? null);
  return mmInfos.some((info) => info !== null) ? mmInfos : null;
}
