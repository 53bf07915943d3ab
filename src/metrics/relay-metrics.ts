/**
 * RelayMetrics: what one relay counts, as plain fields that stages increment and `/metrics` reads.
 *
 * Owns     no I/O and no registry; every label set is fixed here, so nothing from the wire becomes one.
 * Source   Dynamo's five: ai-dynamo 1.6.1; the names of all: dynamo-metrics.ts and kvrelay-metrics.ts.
 */
import { EVENT_FAULTS, type EventFault } from '../protocol/native-batch.ts';
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';
import { type Counts, zeroCounts } from './counts.ts';
import { Histogram } from './histogram.ts';

export const EVENT_TYPES = ['stored', 'removed', 'cleared', 'ignored'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Why a well-formed event is not relayed. */
export const FILTER_REASONS = [
  'unsupported_ownership',
  'unknown_ownership',
  'ignored_event',
  'non_local_locality',
  'unknown_medium',
  'unknown_kind',
  'non_main_attention_kind',
  'non_main_attention_group',
  'unlearned_group_idx',
  'ambiguous_cache_namespace',
  // Of `safe` alone.
  'unsupported_extra_key',
  'engine_unsupported',
] as const;
export type FilterReason = (typeof FILTER_REASONS)[number];

/** Why a whole engine message is dropped. */
export const MALFORMED_REASONS = [
  'frames',
  'sequence',
  'oversize',
  'msgpack',
  'batch_shape',
] as const;
export type MalformedReason = (typeof MALFORMED_REASONS)[number];

/** Media as engines write them; `none` where the event names none, `other` for the rest. */
export const MEDIUM_LABELS = [
  'none',
  'GPU',
  'DEVICE',
  'CPU',
  'CPU_PINNED',
  'CPU_TIER1',
  'CPU_TIER2',
  'DISK',
  'NVME',
  'STORAGE',
  'EXTERNAL',
  'NETWORK',
  'REMOTE',
  'SHARED',
  'FS',
  'OBJ',
  'other',
] as const;
export type MediumLabel = (typeof MEDIUM_LABELS)[number];

export const IGNORED_FIELD_REASONS = ['lora_id_without_name', 'unknown_extra_key'] as const;
export type IgnoredFieldReason = (typeof IGNORED_FIELD_REASONS)[number];

export const PUBLISHED_EVENT_TYPES = ['stored', 'removed', 'cleared'] as const;
export type PublishedEventType = (typeof PUBLISHED_EVENT_TYPES)[number];

export const CLEAR_CAUSES = ['engine', 'restart', 'gap', 'stop'] as const;
export type ClearCause = (typeof CLEAR_CAUSES)[number];

/** How a replay request ended; `late`: an answer that came after that. */
export const REPLAY_OUTCOMES = ['complete', 'partial', 'timeout', 'late'] as const;
export type ReplayOutcome = (typeof REPLAY_OUTCOMES)[number];

export const PUBLISH_FAILURE_REASONS = [
  'payload_too_large',
  'outbox_full',
  'slow_subscriber',
  // Of what a client library refuses: both planes write to the socket themselves, so it stays at 0.
  'client',
] as const;
export type PublishFailureReason = (typeof PUBLISH_FAILURE_REASONS)[number];

/** What a plane counts of its messages, whosever they are. */
export type PlaneMetrics = Pick<RelayMetrics, 'publishFailures' | 'resentMessages'>;
/** How routers' queries are answered; a dump that could not be made counts as an error. */
export const RECOVERY_ANSWERS = [
  'events',
  'tree_dump',
  'too_new',
  'invalid_range',
  'error',
] as const;
export type RecoveryAnswer = (typeof RECOVERY_ANSWERS)[number];

/** Seconds that output waits for an answer; the last bound is the most it may. */
const HOLD_BOUNDS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2,
] as const;

/** Relay latency in seconds, engine arrival to hand-over. */
const LATENCY_BOUNDS_SECONDS = [
  0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
  0.25, 0.5, 1, 5, 15,
] as const;

/** A worker has one, beside it offload chunks and a partial page: more are noise. */
const MAX_BLOCK_SIZES_SEEN = 8;

export class RelayMetrics {
  // What the engine sent.
  engineBatches = 0;
  engineBytes = 0;
  readonly malformed: Counts<MalformedReason> = zeroCounts(MALFORMED_REASONS);
  /** Single events that could not be used, and how many of them may have been removals. */
  readonly droppedEngineEvents: Counts<EventFault> = zeroCounts(EVENT_FAULTS);
  droppedRemovals = 0;
  /** Set for good once the engine's version is seen to be one that cannot be relayed. */
  isEngineUnsupported = false;
  /** Batches of a rank that is not ours. */
  foreignRankBatches = 0;
  missingBatches = 0;
  lostBatches = 0;
  /** Second copies of batches, live and replayed. */
  duplicateBatches = 0;
  /** Batches that came before their turn and found no room; a replay can bring them again. */
  unheldBatches = 0;
  readonly engineReplays: Counts<ReplayOutcome> = zeroCounts(REPLAY_OUTCOMES);
  engineRestarts = 0;
  /** Holes in the engine's numbers, be it on a socket that carries other ranks too. */
  engineGaps = 0;
  /** Gaps and losses when the rank was cleared last: older ones are healed. */
  engineGapsAtClear = 0;
  /** Holes that a replay left open, as above. */
  replayLosses = 0;
  replayLossesAtClear = 0;
  unreadableMessagesAtClear = 0;
  droppedRemovalsAtClear = 0;
  /** Malformed messages on the rank's socket, be it shared with other ranks. */
  unreadableMessages = 0;
  readonly engineEvents: Record<EventType, Counts<MediumLabel>> = {
    stored: zeroCounts(MEDIUM_LABELS),
    removed: zeroCounts(MEDIUM_LABELS),
    cleared: zeroCounts(MEDIUM_LABELS),
    ignored: zeroCounts(MEDIUM_LABELS),
  };
  readonly ignoredFields: Counts<IgnoredFieldReason> = zeroCounts(IGNORED_FIELD_REASONS);

  // What the filter and the converter decided.
  readonly received: Counts<EventType> = zeroCounts(EVENT_TYPES);
  readonly accepted: Counts<EventType> = zeroCounts(EVENT_TYPES);
  readonly filtered: Record<EventType, Counts<FilterReason>> = {
    stored: zeroCounts(FILTER_REASONS),
    removed: zeroCounts(FILTER_REASONS),
    cleared: zeroCounts(FILTER_REASONS),
    ignored: zeroCounts(FILTER_REASONS),
  };
  /** Stores that hold no block of the configured size. */
  emptyStores = 0;
  /** Those of them that name another block size; an offload placeholder names none. */
  wrongSizeStores = 0;
  /** Stores that hold a block, cut from a larger chunk or not. */
  usableStores = 0;
  /** Block sizes that stores named, in the order first seen; bounded. */
  readonly blockSizesSeen: number[] = [];
  /** Events lost before the processor, from holes in the raw event ids. */
  droppedEvents = 0;

  // What batching and dedup took out.
  coalescedEvents = 0;
  /** Removed blocks that another copy still holds. */
  suppressedRemoves = 0;
  /** Stored blocks that no count was kept of, the bound being reached. */
  untrackedBlocks = 0;
  /** Stored blocks that the live set does not hold, its bound being reached. */
  unindexedBlocks = 0;

  // What left.
  readonly cleared: Counts<ClearCause> = zeroCounts(CLEAR_CAUSES);
  readonly publishedEvents: Counts<PublishedEventType> = zeroCounts(PUBLISHED_EVENT_TYPES);
  readonly publishedBlocks: Counts<PublishedEventType> = zeroCounts(PUBLISHED_EVENT_TYPES);
  /** Sent while the rank was quiet; in none of the two above. */
  heartbeats = 0;
  publishedMessages = 0;
  publishedBytes = 0;
  /** Messages handed over again after a reconnect. */
  resentMessages = 0;
  /** Messages of an earlier incarnation that had not been confirmed when the next one began. */
  supersededMessages = 0;
  readonly publishFailures: Counts<PublishFailureReason> = zeroCounts(PUBLISH_FAILURE_REASONS);
  readonly relayLatencySeconds: Histogram = new Histogram(LATENCY_BOUNDS_SECONDS);

  // What routers asked for.
  readonly recoveryQueries: Counts<RecoveryAnswer> = zeroCounts(RECOVERY_ANSWERS);
  readonly outputHoldSeconds: Histogram = new Histogram(HOLD_BOUNDS_SECONDS);
  /** Times the source was announced anew, so that routers take a fresh dump. */
  sourceResyncs = 0;

  // What is held now.
  readonly liveBlocks: Counts<StorageTier> = zeroCounts(STORAGE_TIERS);
  readonly trackedBlocks: Counts<StorageTier> = zeroCounts(STORAGE_TIERS);

  /** A clear of the rank, whoever caused it. */
  noteClear(cause: ClearCause): void {
    this.cleared[cause]++;
    this.noteAgreement();
  }

  /** What routers hold of the rank, be it nothing, agrees with the engine again. */
  noteAgreement(): void {
    this.engineGapsAtClear = this.engineGaps;
    this.replayLossesAtClear = this.replayLosses;
    this.unreadableMessagesAtClear = this.unreadableMessages;
    this.droppedRemovalsAtClear = this.droppedRemovals;
  }

  noteBlockSize(blockSize: number): void {
    const seen = this.blockSizesSeen;
    if (blockSize <= 0) return;
    if (!seen.includes(blockSize) && seen.length < MAX_BLOCK_SIZES_SEEN) seen.push(blockSize);
  }
}
