/**
 * Converter: an accepted engine event to a placement event.
 *
 * Store    cut into blocks of the configured size; a wrong size or too few tokens end the cutting, what
 *          was cut is kept, be it nothing. A hash that occurs twice, the parent's included, makes the
 *          whole store an empty remove: it breaks a chain and does nothing else.
 * Owns     nothing; the lists stay where the reader put them.
 * Source   ai-dynamo/dynamo 1.6.1, zmq_listener.rs; tokens hashes: src/hashing.
 */
import type { PadTokenIds } from '../hashing/pad-tokens.ts';
import { hashSeed, tokensHashes, wholeBlocks } from '../hashing/tokens-hash.ts';
import { U64List } from '../kernel/u64-list.ts';
import type { U64Words } from '../kernel/xxh3.ts';
import type { MmInfo } from '../protocol/multimodal.ts';
import type { RawEvent } from '../protocol/native-batch.ts';
import { PlacementEvent } from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';
import { mmInfosOfExtraKeys } from './extra-key-texts.ts';

export interface ConverterOptions extends PadTokenIds {
  /** Tokens a block as the router counts them. */
  readonly blockSize: number;
}

/** What the batch and the filter know about an event. */
export interface EventContext {
  readonly dpRank: number;
  readonly storageTier: StorageTier;
  readonly namespace: U64Words | null;
  readonly arrivedAtMs: number;
}

export class Converter {
  readonly #options: ConverterOptions;

  constructor(options: ConverterOptions) {
    this.#options = options;
  }

  convert(event: RawEvent, context: EventContext): PlacementEvent {
    if (event.type === 'stored') return this.#convertStored(event, context);
    const { dpRank, storageTier, arrivedAtMs } = context;
    const hashes = event.type === 'cleared' ? null : event.blockHashes;
    const type = event.type === 'cleared' ? 'cleared' : 'removed';
    const list = hashes ?? new U64List(0);
    return new PlacementEvent(type, dpRank, storageTier, list, null, arrivedAtMs);
  }

  #convertStored(event: RawEvent, context: EventContext): PlacementEvent {
    const { dpRank, storageTier, arrivedAtMs, namespace } = context;
    const blockHashes = event.blockHashes ?? new U64List(0);
    if (blockHashes.repeats(event.hasParent, event.parentLow, event.parentHigh)) {
      const none = new U64List(0);
      return new PlacementEvent('removed', dpRank, storageTier, none, null, arrivedAtMs);
    }
    const blockCount = this.#blockCount(event, blockHashes.length);
    const mmInfos = mmInfosOf(event, blockCount);
    const hashes = this.#tokensHashes(event, blockCount, namespace, mmInfos);
    blockHashes.length = blockCount;
    const stored = new PlacementEvent(
      'stored',
      dpRank,
      storageTier,
      blockHashes,
      hashes,
      arrivedAtMs,
    );
    stored.hasParent = event.hasParent;
    stored.parentLow = event.parentLow;
    stored.parentHigh = event.parentHigh;
    stored.mmInfos = mmInfos;
    stored.sessionId = event.sessionId;
    return stored;
  }

  #blockCount(event: RawEvent, hashCount: number): number {
    const { blockSize } = this.#options;
    if (event.blockSize !== blockSize || event.tokens === null) return 0;
    return Math.min(hashCount, wholeBlocks(event.tokens.length, blockSize, event.isEagle));
  }

  #tokensHashes(
    event: RawEvent,
    blockCount: number,
    namespace: U64Words | null,
    mmInfos: (MmInfo | null)[] | null,
  ): U64List {
    if (event.tokens === null || blockCount === 0) return new U64List(0);
    return tokensHashes({
      tokens: event.tokens,
      blockSize: this.#options.blockSize,
      blockCount,
      isEagle: event.isEagle,
      seed: hashSeed(event.loraName, namespace),
      mmInfos,
      padTokenIds: this.#options,
    });
  }
}

/** Exactly one entry a block, null where no block has an image. */
function mmInfosOf(event: RawEvent, blockCount: number): (MmInfo | null)[] | null {
  const given = event.mmInfos ?? mmInfosOfExtraKeys(event.extraKeys);
  if (given === null) return null;
  const mmInfos = Array.from({ length: blockCount }, (_, block) => given[block] ?? null);
  return mmInfos.some((info) => info !== null) ? mmInfos : null;
}
