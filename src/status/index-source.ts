/** IndexSource: what the worker tells of its indexes over HTTP; one entry a rank that has one. */
import type { EncodedEvents } from '../protocol/recovery.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';

export interface IndexSource {
  /** In the order of ranks; empty without an indexer. */
  indexedRanks(): readonly IndexedRank[];
}

export interface IndexedRank {
  readonly dpRank: number;
  /** Events from `start` to `end`, the newest where there is none, within the bounds. */
  events(start: number | null, end: number | null, bounds: EventBounds): EventsReading;
  /** All blocks as store events, parents first; null where that cannot be had now. */
  dump(): Promise<EncodedEvents | null>;
  match(prompt: MatchPrompt): readonly PromptMatch[];
}

export interface EventBounds {
  readonly maxEvents: number;
  /** Of their encoded form. */
  readonly maxBytes: number;
}

export type EventsReading =
  | { readonly kind: 'tree_dump' | 'too_new' | 'invalid_range'; readonly lastEventId: number }
  | {
      readonly kind: 'events';
      readonly lastEventId: number;
      /** Encoded, one each. */
      readonly events: readonly Uint8Array[];
      /** Where a bound cut them off; null where all that were asked for are here. */
      readonly nextEventId: number | null;
    };

/** A prompt as a router sees it; see the API for its bounds. */
export interface MatchPrompt {
  readonly tokens: readonly number[];
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  readonly mmHashes: readonly (readonly bigint[])[];
  readonly isEagle: boolean;
}

/** Blocks at the prompt's start that a rank has, by tier: each tier goes on where the one before ends. */
export interface PromptMatch {
  readonly dpRank: number;
  readonly blocks: Readonly<Record<StorageTier, number>>;
}
