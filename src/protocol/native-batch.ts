/**
 * Native batch: one engine message, decoded; the unit that flows through the pipeline.
 *
 * Lists and tokens lie in the kernel's arena and live until the next message is read.
 */
import type { TokenList } from '../kernel/token-list.ts';
import type { U64List } from '../kernel/u64-list.ts';
import type { MmInfo } from './multimodal.ts';

export type RawEventType = 'stored' | 'removed' | 'cleared' | 'ignored';

/** Where the block lies as seen from the engine; `other` is any text that is neither. */
export type Locality = 'LOCAL' | 'REMOTE' | 'other';

/** A text among the extra keys of a block; `[text, offset]` pairs lose their offset. */
export interface ExtraKey {
  readonly text: string;
  readonly hasOffset: boolean;
}

/** One engine event as it was sent: typed, nothing interpreted. Nil and absent are both null. */
export class RawEvent {
  type: RawEventType;
  /** Above 1: as many removes of one block each, next to each other and alike, the hashes in their order. */
  eventCount = 1;
  /** Engine block hashes, one a block; null where the event has none. */
  blockHashes: U64List | null = null;
  hasParent = false;
  /** Words of the parent's hash, signed. */
  parentLow = 0;
  parentHigh = 0;
  tokens: TokenList | null = null;
  /** Tokens came as overlapping pairs: windows are one token longer than a block. */
  isEagle = false;
  /** Tokens a block; -1 where it exceeds what a number holds exactly. */
  blockSize = 0;
  medium: string | null = null;
  loraName: string | null = null;
  /** Engines before adapter names sent a number alone; it has no effect. */
  hasLoraId = false;
  cacheSalt: string | null = null;
  /** A salt field was given, be it empty: extra keys are then not searched for one. */
  hasSaltField = false;
  /** Texts among the extra keys, a list a block; null where there are none. */
  extraKeys: readonly (readonly ExtraKey[])[] | null = null;
  /** An extra key of a kind that no router can tell from none (`safe` alone reads such events). */
  hasUnsupportedExtraKey = false;
  /** Image data a block; null where the field is nil or absent. */
  mmInfos: readonly (MmInfo | null)[] | null = null;
  groupIdx: number | null = null;
  specKind: string | null = null;
  locality: Locality | null = null;
  ownership: string | null = null;
  sessionId: string | null = null;

  constructor(type: RawEventType) {
    this.type = type;
  }
}

/** Why a well-formed event could not be used (`safe`; in `strict` it costs the batch). */
export const EVENT_FAULTS = ['unknown_tag', 'bad_field', 'missing_field', 'bad_hash'] as const;
export type EventFault = (typeof EVENT_FAULTS)[number];

/** The events of a batch that could not be used, counted: there may be as many as bytes. */
export interface DroppedEvents {
  readonly byReason: Readonly<Record<EventFault, number>>;
  /** Those that may have been removals, so that routers may believe in blocks that are gone. */
  readonly removals: number;
}

export interface NativeBatch {
  /** Rank the batch names, as u32; null where it names none. */
  readonly dpRank: number | null;
  readonly events: readonly RawEvent[];
  /** Null where every event could be used. */
  readonly dropped: DroppedEvents | null;
  /** The engine's version is one that cannot be relayed; its events are filtered from here on. */
  readonly isEngineUnsupported: boolean;
  /** Arrival, ms on the monotonic clock. */
  readonly arrivedAtMs: number;
}

/** Why a payload is no native batch: too large for memory, no MessagePack, or of another shape. */
export type BatchFault = 'oversize' | 'msgpack' | 'batch_shape';
