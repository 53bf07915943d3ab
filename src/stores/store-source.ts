/**
 * StoreSource: a store whose objects are followed, as the worker starts, shows and stops it. What it holds
 * goes into the shared ObjectState.
 */
import type { SourceMetrics } from '../metrics/source-metrics.ts';
import type { ObjectScope } from './objects/object-change.ts';

export interface StoreSource {
  /** `mooncake` and the like: what metrics and status call it, each source by another name. */
  readonly name: string;
  readonly metrics: SourceMetrics;
  readonly isConnected: boolean;
  /** What is held may be wrong. */
  readonly isSuspect: boolean;
  /** Whether it is the one that tells of these objects. */
  owns(scope: ObjectScope): boolean;
  /** Rejects with HttpListenError where it listens and cannot. */
  start(): void | Promise<void>;
  stop(): Promise<void>;
  reading(): SourceReading;
}

/** Something an operator should know, with what to do about it. */
export interface SourceNotice {
  readonly message: string;
  readonly remedy: string;
}

export interface SourceReading {
  /** Where its events come from. */
  readonly endpoint: string;
  /** Of the last message, u64; null before the first. */
  readonly lastSequence: bigint | null;
  readonly lastMessageAgeMs: number | null;
  readonly heldMessages: number;
  /** Null where nobody can be asked. */
  readonly reconciliation: ReconciliationReading | null;
  readonly notices: readonly SourceNotice[];
}

export interface ReconciliationReading {
  /** Who is asked. */
  readonly endpoint: string;
  readonly state: 'idle' | 'running' | 'waiting';
  /** Of the last run that came to its end; null before the first. */
  readonly lastMs: number | null;
  readonly ageMs: number | null;
}
