/**
 * EventFilter: which engine events are relayed, and under which namespace a store is.
 *
 * Order    ownership, `Ignored`, locality, medium; then, on device and host alone, attention group and
 *          cache namespace. The first rule that matches gives the reason.
 * Owns     learned attention groups and cache namespaces, both by rank.
 * Source   ai-dynamo/dynamo 1.6.1, zmq_listener.rs; a filtered event takes no raw id.
 */
import { namespaceDigest } from '../hashing/tokens-hash.ts';
import type { U64Words } from '../kernel/xxh3.ts';
import type { FilterReason } from '../metrics/relay-metrics.ts';
import type { Compat } from '../protocol/compat.ts';
import type { RawEvent } from '../protocol/native-batch.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';
import { AttentionGroups } from './attention-groups.ts';
import { CacheNamespaces } from './cache-namespaces.ts';
import { saltOfExtraKeys } from './extra-key-texts.ts';
import { tierOfMedium } from './media.ts';

export class EventFilter {
  readonly #compat: Compat;
  // The medium asked for last, which the next event mostly repeats; no medium is the device.
  #lastMedium: string | null = null;
  #lastTier: StorageTier | undefined = 'device';
  /** Tier of the event accepted last. */
  storageTier: StorageTier = 'device';
  /** Digest of the namespace of the store accepted last. */
  namespace: U64Words | null = null;
  readonly #groups = new AttentionGroups();
  readonly #namespaces: CacheNamespaces;

  constructor(compat: Compat) {
    this.#compat = compat;
    this.#namespaces = new CacheNamespaces(compat);
  }

  /**
   * Why `event` is not relayed; null where it is, with `storageTier` and `namespace` set. Accepted, it
   * gets `rawEventId`.
   */
  rejection(dpRank: number, event: RawEvent, rawEventId: number): FilterReason | null {
    if (event.type === 'ignored') return 'ignored_event';
    if (event.ownership !== null) {
      return event.ownership === 'kvcr' ? 'unsupported_ownership' : 'unknown_ownership';
    }
    this.namespace = null;
    if (event.type === 'cleared') {
      this.storageTier = 'device';
      this.forgetRank(dpRank, false);
      return null;
    }
    if (event.locality !== null && event.locality !== 'LOCAL') return 'non_local_locality';
    const tier = this.#tierOf(event.medium);
    if (tier === undefined) return 'unknown_medium';
    this.storageTier = tier;
    return event.type === 'stored'
      ? this.#storedRejection(dpRank, event, tier, rawEventId)
      : this.#removedRejection(dpRank, event, tier);
  }

  /** `safe`: told by reference counting when no copy of the removed blocks is left. */
  noteLastCopyGone(removed: PlacementEvent): void {
    this.#namespaces.noteLastCopyGone(removed);
  }

  /** Salts go with every clear of a rank, its groups only where the engine is another one. */
  forgetRank(dpRank: number, forgetsGroups: boolean): void {
    this.#namespaces.forgetRank(dpRank);
    if (forgetsGroups) this.#groups.forgetRank(dpRank);
  }

  #tierOf(medium: string | null): StorageTier | undefined {
    if (medium === this.#lastMedium) return this.#lastTier;
    this.#lastMedium = medium;
    this.#lastTier = tierOfMedium(medium, this.#compat);
    return this.#lastTier;
  }

  free(): void {
    this.#namespaces.free();
  }

  #storedRejection(
    dpRank: number,
    event: RawEvent,
    tier: StorageTier,
    rawEventId: number,
  ): FilterReason | null {
    const { groupIdx, specKind } = event;
    const salt = event.hasSaltField
      ? event.cacheSalt
      : saltOfExtraKeys(event.extraKeys, event.loraName);
    if (!hasGroups(tier)) {
      if (event.hasUnsupportedExtraKey) return 'unsupported_extra_key';
      this.namespace = salt === null ? null : namespaceDigest(salt);
      return null;
    }
    // A store that is itself dropped teaches its group all the same.
    if (groupIdx !== null && specKind !== null) this.#groups.learn(dpRank, groupIdx, specKind);
    const reason = this.#groups.rejection(dpRank, groupIdx, specKind);
    if (reason !== null) return reason;
    // Other prompts would get the same tokens hash.
    if (event.hasUnsupportedExtraKey) return 'unsupported_extra_key';
    const namespace = this.#namespaces.resolve(dpRank, tier, event, salt);
    if (namespace === 'ambiguous') return 'ambiguous_cache_namespace';
    this.namespace = namespace;
    if (event.blockHashes !== null) {
      this.#namespaces.noteStored(dpRank, tier, event.blockHashes, namespace, rawEventId);
    }
    return null;
  }

  #removedRejection(dpRank: number, event: RawEvent, tier: StorageTier): FilterReason | null {
    if (!hasGroups(tier)) return null;
    const reason = this.#groups.rejection(dpRank, event.groupIdx, event.specKind);
    if (reason === null && event.blockHashes !== null) {
      this.#namespaces.noteRemoved(dpRank, tier, event.blockHashes);
    }
    return reason;
  }
}

/** Only the tiers that the engine itself manages have groups and inherit namespaces. */
function hasGroups(tier: StorageTier): boolean {
  return tier === 'device' || tier === 'host_pinned';
}
