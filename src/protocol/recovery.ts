/** Router events of an answer: their MessagePack, one after the other, cut anywhere between events. */
export interface EncodedEvents {
  readonly count: number;
  readonly chunks: readonly Uint8Array[];
}

export type IndexAnswer =
  | { readonly kind: 'events'; readonly events: EncodedEvents; readonly lastEventId: number }
  | { readonly kind: 'tree_dump'; readonly events: EncodedEvents; readonly lastEventId: number }
  | {
      readonly kind: 'too_new';
      readonly requestedStart: number;
      readonly requestedEnd: number;
      readonly newestAvailable: number;
    }
  | { readonly kind: 'invalid_range'; readonly startId: number; readonly endId: number }
  | { readonly kind: 'tree_dump_failed'; readonly lastEventId: number; readonly message: string };

export interface RecoveryIndex {
  /** Id of the newest event of the source; 0 before the first. */
  readonly lastEventId: number;
  /**
   * Answers by the table of the publisher's query service. A dump is built in slices and shared by all who wait;
   * its tail (the ring's events since its base) is added by `finish`, as late as the writer can call it.
   */
  answer(startEventId: number | null, endEventId: number | null): PendingAnswer;
}

/** `prepare` resolves once all slow work is done; `finish` then gives the answer of this very moment, synchronously. */
export interface PendingAnswer {
  prepare(): Promise<void>;
  finish(): IndexAnswer;
}
