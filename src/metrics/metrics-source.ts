/** MetricsSource: what a scrape may read, as the worker hands it in. Nothing here is written to. */
import type { CoordinatorReading } from './coordinator-families.ts';
import type { DegradedCode } from './degraded.ts';
import type { DiscoveryMetrics } from './discovery-metrics.ts';
import type { LmcacheSourceReading } from './lmcache-source-metrics.ts';
import type { LoadMetrics } from './load-metrics.ts';
import type { ObjectStreamMetrics } from './object-metrics.ts';
import type { RecoveryCounts } from './recovery-counts.ts';
import type { RelayMetrics } from './relay-metrics.ts';
import type { SourceMetrics } from './source-metrics.ts';

export interface MetricsSource {
  readonly version: string;
  /** Read at each scrape: a worker id found later, or a successor's, starts new series. */
  readonly labels: WorkerLabels;
  relays(): readonly RelayReading[];
  readonly discovery: DiscoveryMetrics;
  plane(): PlaneReading;
  /** Null where no worker load is published. */
  load(): LoadMetrics | null;
  recovery(): RecoveryCounts;
  /** One entry a store. */
  stores(): readonly StoreReading[];
  /** Null where there is no store. */
  objectStream(): ObjectStreamReading | null;
  /** Null where no chunks of LMCache are placed. */
  chunks(): ChunkReading | null;
  /** Null without a bridge of LMCache. */
  lmcache(): LmcacheSourceReading | null;
  /** Null where LMCache's servers do not post here. */
  coordinator(): CoordinatorReading | null;
  eventLoopLagSeconds(): number;
}

export interface WorkerLabels {
  readonly namespace: string;
  readonly component: string;
  /** Lower hex without prefix; empty while there is no worker. */
  readonly workerIdHex: string;
}

export interface RelayReading {
  readonly dpRank: number;
  readonly metrics: RelayMetrics;
  readonly engineConnected: boolean;
  readonly degraded: readonly DegradedCode[];
}

export interface StoreReading {
  readonly name: string;
  readonly metrics: SourceMetrics;
  readonly connected: boolean;
  readonly suspect: boolean;
  readonly objects: number;
  /** By type, of a source that has types of its own. */
  readonly received?: ReadonlyMap<string, number>;
}

export interface ObjectStreamReading {
  readonly metrics: ObjectStreamMetrics;
  readonly objects: number;
  readonly bytes: number;
  readonly untrackedObjects: number;
  readonly unkeptAttributes: number;
  readonly bufferedEvents: number;
  readonly matchedKeys: number;
  readonly unmatchedKeys: number;
  readonly placedBlocks: number;
  /** Blocks shown by the engine that found no room to be remembered. */
  readonly unkeptBlocks: number;
}

export interface ChunkReading {
  readonly chunks: number;
  readonly placedBlocks: number;
  /** By what is not known of them: `tokens`, `parent`. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  /** For want of room: `names`, `salts`, `tokens`, `chunks`. */
  readonly forgotten: Readonly<Record<string, number>>;
}

export interface PlaneReading {
  readonly connected: boolean;
  readonly outboxBytes: number;
  readonly outboxMessages: number;
  readonly disconnects: number;
  readonly reconnects: number;
  readonly refusals: number;
}
