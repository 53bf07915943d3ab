/**
 * StatusSource: what the worker shows of itself over HTTP. The types are the JSON of `/api/status`,
 * snake case included: this is the codec of that interface.
 *
 * Numbers  u64 (ids, engine seqs) are decimal strings, exact; null where there is none yet.
 * Size     bounded by the number of ranks and settings, never by blocks; no token ids anywhere.
 * Change   keys may be added, never renamed.
 */
import type { DegradedNotice } from '../metrics/degraded.ts';
import type { FilterReason } from '../metrics/relay-metrics.ts';
import type { StorageTier } from '../protocol/storage-tier.ts';
import type { CoordinatorStatus } from './coordinator-status.ts';
import type { LmcacheStatus } from './lmcache-status.ts';

export interface StatusSource {
  /** Built anew at each call; at most once a second for all stream clients together. */
  status(): StatusSnapshot;
  /** False only while the event loop or a stage is stuck. */
  live(): boolean;
  ready(): Readiness;
}

export interface Readiness {
  readonly ready: boolean;
  /** What the start or the shutdown still waits for, as short sentences. */
  readonly waitingFor: readonly string[];
}

export type WorkerState = 'starting' | 'ready' | 'degraded' | 'stopping';
export type RankState = 'connecting' | 'idle' | 'filtered_only' | 'flowing';
export type ReplayState = 'none' | 'idle' | 'running';

/** As configured; secrets are masked before they get here. */
export type SettingValue = string | number | boolean | null | readonly string[];

export interface StatusSnapshot {
  readonly version: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly started_at: string;
  readonly uptime_s: number;
  readonly compat: 'strict' | 'safe';
  readonly state: WorkerState;
  readonly settings: Readonly<Record<string, SettingValue>>;
  readonly plane: PlaneStatus;
  /** Null where routers cannot ask for what they missed. */
  readonly recovery: RecoveryStatus | null;
  readonly ranks: readonly RankStatus[];
  /** Null where none is published. */
  readonly worker_load: WorkerLoadStatus | null;
  readonly sources: readonly SourceStatus[];
  /** Null where there is no store. */
  readonly objects: ObjectsStatus | null;
  /** Null without a bridge of LMCache. */
  readonly lmcache: LmcacheStatus | null;
  /** Null where LMCache's servers do not post here. */
  readonly lmcache_coordinator: CoordinatorStatus | null;
}

export interface PlaneStatus {
  readonly kind: 'zmq' | 'nats' | 'none';
  readonly connected: boolean;
  readonly endpoint: string | null;
  readonly outbox_bytes: number;
  readonly outbox_messages: number;
}

export interface RecoveryStatus {
  readonly request_plane: 'tcp' | 'nats';
  /** Null on the NATS plane, which has a subject a source. */
  readonly endpoint: string | null;
  readonly clients: number;
  readonly answers_in_flight: number;
}

export interface RankStatus {
  readonly dp_rank: number;
  /** Null until discovery has found it. */
  readonly worker_id: string | null;
  readonly publisher_id: string;
  readonly state: RankState;
  readonly degraded: readonly DegradedNotice[];
  readonly engine: EngineStatus;
  readonly counters: RankCounters;
  readonly filtered_by_reason: Readonly<Partial<Record<FilterReason, number>>>;
  /** Where this rank's events leave; on the ZMQ plane each rank has an address of its own. */
  readonly plane_endpoint: string | null;
  /** Since the start: upper bounds of the buckets that hold the quantiles. */
  readonly latency_ms: { readonly p50: number | null; readonly p99: number | null };
  /** Entries waiting, by stage. */
  readonly queues: Readonly<Record<string, number>>;
  readonly blocks: Readonly<Record<StorageTier, number>>;
  readonly last_event_id: string | null;
  readonly block_size: { readonly configured: number | null; readonly seen: readonly number[] };
}

export interface EngineStatus {
  readonly endpoint: string;
  readonly connected: boolean;
  readonly last_seq: string | null;
  readonly emitted_seq: string | null;
  readonly last_batch_age_ms: number | null;
  readonly replay: ReplayState;
}

/** Since the start: events, `published_blocks`, and below them batches and messages of the engine. */
export interface RankCounters {
  readonly received: number;
  readonly accepted: number;
  readonly filtered: number;
  readonly coalesced: number;
  readonly published_events: number;
  readonly published_blocks: number;
  /** Empty removes in quiet times; in none of the two above. */
  readonly heartbeats: number;
  readonly suppressed_removes: number;
  readonly missing_batches: number;
  readonly lost_batches: number;
  readonly duplicate_batches: number;
  readonly engine_restarts: number;
  readonly malformed: number;
}

/** What routers are told of the engine's load, and where. */
export interface WorkerLoadStatus {
  /** Address of the page it is read from. */
  readonly engine_metrics: string;
  readonly publisher_id: string;
  readonly plane_endpoint: string | null;
  /** Null while unknown. */
  readonly ranks: readonly { readonly dp_rank: number; readonly kv_used_blocks: number | null }[];
}

/** One store source beside the engine. */
export interface SourceStatus {
  readonly source: string;
  readonly endpoint: string;
  readonly connected: boolean;
  /** What is held may be wrong, until it has been compared. */
  readonly suspect: boolean;
  readonly degraded: readonly DegradedNotice[];
  readonly objects: number;
  readonly last_seq: string | null;
  readonly last_message_age_ms: number | null;
  /** Waiting while an answer of the store is on its way. */
  readonly held_messages: number;
  readonly counters: SourceCounters;
  /** Null where the store cannot be asked. */
  readonly reconciliation: ReconciliationStatus | null;
  /** Null where keys are not looked into. */
  readonly placement: PlacementStatus | ChunkPlacementStatus | null;
}

/** Blocks that routers are told of, in the tier that stands for the store. */
export interface PlacementStatus {
  readonly pattern: string;
  readonly storage_tier: StorageTier;
  /** Of objects that came: those whose key says which block they hold, and those whose does not. */
  readonly matched_keys: number;
  readonly unmatched_keys: number;
  /** Of which an object is held. */
  readonly held_blocks: number;
  /** Those of them that the engine has shown, over all ranks. */
  readonly placed_blocks: number;
}

/** The same of a store whose objects are chunks with tokens. */
export interface ChunkPlacementStatus {
  readonly pattern: 'chunks';
  readonly storage_tier: StorageTier;
  /** That are known, held or not. */
  readonly chunks: number;
  /** Over all ranks, tiers and sources of chunks. */
  readonly placed_blocks: number;
  /** Chunks that wait for their tokens or their parent now; of those refused, how many stores so far. */
  readonly unplaced: Readonly<Record<string, number>>;
}

/** Since the start. */
export interface SourceCounters {
  readonly connects: number;
  readonly messages: number;
  readonly received: number;
  readonly applied: number;
  readonly repeated: number;
  readonly lost_messages: number;
  readonly restarts: number;
  readonly malformed: number;
  readonly dropped_events: number;
  readonly invalidated_objects: number;
}

export interface ReconciliationStatus {
  readonly endpoint: string;
  readonly state: 'idle' | 'running' | 'waiting';
  /** Of the last one that came to its end. */
  readonly last_ms: number | null;
  readonly age_ms: number | null;
}

/** The stream that tells what all sources hold. */
export interface ObjectsStatus {
  readonly publisher_id: string;
  /** Where it leaves; on the ZMQ plane an address of its own. */
  readonly plane_endpoint: string | null;
  readonly last_event_id: string | null;
  readonly objects: number;
  /** Memory of the tables of objects. */
  readonly bytes: number;
  readonly buffered_events: number;
}
