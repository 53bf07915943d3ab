/**
 * What `/api/status` shows of an LMCache beside the engine; snake case as there. Counts are since the start.
 *
 * Size  bounded: adapters, models and salts by number, violations by the table of contracts.
 */
import type { DegradedNotice } from '../metrics/degraded.ts';

export interface LmcacheStatus {
  readonly endpoint: string;
  readonly connected: boolean;
  readonly replay: 'none' | 'idle' | 'running';
  /** Null while unknown. */
  readonly version: string | null;
  readonly last_seq: string | null;
  readonly last_message_age_ms: number | null;
  readonly degraded: readonly DegradedNotice[];
  readonly events: number;
  readonly losses: LmcacheLosses;
  readonly requests: LmcacheRequests;
  readonly hit_rate: LmcacheHitRate;
  /** By L2 adapter. */
  readonly adapters: readonly LmcacheAdapter[];
  /** Chunks. */
  readonly l1: { readonly read: number; readonly written: number; readonly evicted: number };
  readonly l2: { readonly evicted: number };
  /** Keys or tasks by what failed and why, none that is 0; beyond 50 as `other`. */
  readonly failures: Readonly<Record<string, number>>;
  /** The ones with most tokens. */
  readonly models: readonly LmcacheShare[];
  readonly salts: readonly LmcacheShare[];
  readonly contracts: LmcacheContracts;
}

export interface LmcacheLosses {
  readonly lost_messages: number;
  readonly bridge_dropped: number;
  readonly bus_dropped: number;
  readonly malformed: number;
  readonly restarts: number;
}

export interface LmcacheRequests {
  readonly in_flight: number;
  readonly open_transfers: number;
  readonly completed: number;
  readonly timed_out: number;
}

/** Share of tokens of lookups that were found, 0 to 1; null where none was asked for. */
export interface LmcacheHitRate {
  readonly minute: number | null;
  readonly ten_minutes: number | null;
  readonly hour: number | null;
  readonly total: number | null;
  /** Of each of the last 60 minutes, oldest first. */
  readonly by_minute: readonly (number | null)[];
}

export interface LmcacheAdapter {
  readonly l2_name: string;
  readonly stored_bytes: number;
  readonly loaded_bytes: number;
  readonly store_tasks: number;
  readonly load_tasks: number;
  readonly failed_stores: number;
  /** Mean of its tasks from submission to end; null without one. */
  readonly store_gb_per_s: number | null;
  readonly load_gb_per_s: number | null;
}

export interface LmcacheShare {
  readonly name: string;
  readonly requested_tokens: number;
  readonly hit_tokens: number;
}

export interface LmcacheContracts {
  readonly violations: readonly {
    readonly event: string;
    readonly field: string;
    readonly kind: string;
    readonly count: number;
  }[];
  readonly additive_keys: number;
  readonly unknown_events: number;
  readonly unknown_types: readonly string[];
}
