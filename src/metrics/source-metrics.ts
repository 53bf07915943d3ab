/**
 * SourceMetrics: what one store source counts, in fields that a scrape reads. The same for every kind of
 * source; a source that cannot have one leaves it at 0.
 */
import { type Counts, zeroCounts } from './counts.ts';

export const SOURCE_EVENT_TYPES = ['stored', 'removed', 'cleared'] as const;
export type SourceEventType = (typeof SOURCE_EVENT_TYPES)[number];

/** `received` events are `applied` where they change what is held, else `repeated`. */
export const SOURCE_EVENT_STAGES = ['received', 'applied', 'repeated'] as const;
export type SourceEventStage = (typeof SOURCE_EVENT_STAGES)[number];

export const SOURCE_MESSAGE_FAULTS = [
  'frames',
  'sequence',
  'msgpack',
  'json',
  'batch_shape',
  'oversize',
] as const;
export type SourceMessageFault = (typeof SOURCE_MESSAGE_FAULTS)[number];

export const SOURCE_EVENT_FAULTS = [
  'unknown_type',
  'bad_field',
  'missing_field',
  'bad_key',
] as const;
export type SourceEventFault = (typeof SOURCE_EVENT_FAULTS)[number];

/** How a comparison with the store's own answers ended. */
export const RECONCILIATION_OUTCOMES = ['complete', 'failed', 'superseded'] as const;
export type ReconciliationOutcome = (typeof RECONCILIATION_OUTCOMES)[number];

export class SourceMetrics {
  /** Attempts to connect, those without success included. */
  connects = 0;
  messages = 0;
  bytes = 0;
  /** Numbers missing between two messages: messages, and events that the publisher gave up. */
  lostMessages = 0;
  restarts = 0;
  readonly malformed: Counts<SourceMessageFault> = zeroCounts(SOURCE_MESSAGE_FAULTS);
  readonly droppedEvents: Counts<SourceEventFault> = zeroCounts(SOURCE_EVENT_FAULTS);
  readonly events: Readonly<Record<SourceEventType, Counts<SourceEventStage>>> = {
    stored: zeroCounts(SOURCE_EVENT_STAGES),
    removed: zeroCounts(SOURCE_EVENT_STAGES),
    cleared: zeroCounts(SOURCE_EVENT_STAGES),
  };
  readonly reconciliations: Counts<ReconciliationOutcome> = zeroCounts(RECONCILIATION_OUTCOMES);
  /** Keys that the store was asked for, and objects that its answers changed. */
  askedKeys = 0;
  correctedObjects = 0;
  /** Objects given up because nobody could say whether they are still there. */
  invalidatedObjects = 0;
  /** Answers given up because more came meanwhile than could be held. */
  brokenHolds = 0;
}
