/**
 * The relay's own metrics: one series for every label value known in advance, at 0 from the start,
 * so that a rate or an alarm never begins with a missing series.
 *
 * Labels   `dp_rank` on what one relay counts; none on what the process shares, such as the plane.
 */
import type { Registry } from 'prom-client';
import { DEGRADED_CODES } from './degraded.ts';
import type { MetricsSource, PlaneReading, RelayReading } from './metrics-source.ts';
import { EVENT_TYPES, MEDIUM_LABELS, type RelayMetrics } from './relay-metrics.ts';
import { scrapedCounter, scrapedGauge, scrapedHistogram } from './scraped.ts';

type Row<Read> = readonly [name: string, help: string, read: Read];
type LabelledRow<Read> = readonly [name: string, label: string, help: string, read: Read];

const RANK_COUNTERS: readonly Row<(metrics: RelayMetrics) => number>[] = [
  ['engine_batches_total', 'Messages received from the engine', (m) => m.engineBatches],
  ['engine_bytes_total', 'Payload bytes received from the engine', (m) => m.engineBytes],
  [
    'engine_missing_batches_total',
    'Batches missing in the numbering of the engine, replayed or not',
    (m) => m.missingBatches,
  ],
  [
    'engine_lost_batches_total',
    'Missing batches that no replay brought back',
    (m) => m.lostBatches,
  ],
  [
    'engine_duplicate_batches_total',
    'Second copies of batches, from a replay or beside one',
    (m) => m.duplicateBatches,
  ],
  [
    'engine_unheld_batches_total',
    'Batches that found no room while a replay ran, and had to be replayed as well',
    (m) => m.unheldBatches,
  ],
  ['engine_restarts_total', 'Restarts of the engine', (m) => m.engineRestarts],
  [
    'foreign_rank_batches_total',
    'Batches dropped because their rank is not one of this worker',
    (m) => m.foreignRankBatches,
  ],
  [
    'coalesced_events_total',
    'Events merged into an earlier one while batching',
    (m) => m.coalescedEvents,
  ],
  [
    'suppressed_removes_total',
    'Removes held back because another reference keeps the block',
    (m) => m.suppressedRemoves,
  ],
  ['published_messages_total', 'Messages handed to the event plane', (m) => m.publishedMessages],
  ['published_bytes_total', 'Bytes handed to the event plane', (m) => m.publishedBytes],
  ['heartbeats_total', 'Empty removes sent while the rank was quiet', (m) => m.heartbeats],
  [
    'resent_messages_total',
    'Messages handed to the event plane again after a reconnect',
    (m) => m.resentMessages,
  ],
];

const LABELLED_RANK_COUNTERS: readonly LabelledRow<
  (metrics: RelayMetrics) => Readonly<Record<string, number>>
>[] = [
  [
    'malformed_messages_total',
    'reason',
    'Engine messages dropped whole because they could not be read',
    (m) => m.malformed,
  ],
  [
    'dropped_events_total',
    'reason',
    'Single events dropped from messages that were otherwise used',
    (m) => m.droppedEngineEvents,
  ],
  [
    'ignored_fields_total',
    'reason',
    'Event fields left out because nothing can be done with them',
    (m) => m.ignoredFields,
  ],
  [
    'engine_replays_total',
    'outcome',
    'Replays asked of the engine, by how they ended; late: answers that came after that',
    (m) => m.engineReplays,
  ],
  ['cleared_total', 'cause', 'Clears published, by cause', (m) => m.cleared],
  [
    'published_events_total',
    'event_type',
    'Events handed to the event plane',
    (m) => m.publishedEvents,
  ],
  [
    'published_blocks_total',
    'event_type',
    'Blocks in the events handed to the event plane',
    (m) => m.publishedBlocks,
  ],
  [
    'publish_failures_total',
    'reason',
    'Messages that could not be published',
    (m) => m.publishFailures,
  ],
];

const RANK_BLOCK_GAUGES: readonly Row<
  (metrics: RelayMetrics) => Readonly<Record<string, number>>
>[] = [
  ['live_blocks', 'Blocks the engine holds now, as published', (m) => m.liveBlocks],
  ['tracked_blocks', 'Blocks in the reference counts', (m) => m.trackedBlocks],
];

const PLANE_COUNTERS: readonly Row<(plane: PlaneReading) => number>[] = [
  ['plane_disconnects_total', 'Connections to the event plane that broke', (p) => p.disconnects],
  ['plane_reconnects_total', 'Connections to the event plane made again', (p) => p.reconnects],
  ['plane_refused_subscribers_total', 'Subscribers that were too many', (p) => p.refusals],
];

const PLANE_GAUGES: readonly Row<(plane: PlaneReading) => number>[] = [
  ['plane_connected', 'Whether the event plane is connected', (p) => Number(p.connected)],
  ['outbox_bytes', 'Bytes kept until the event plane confirms them', (p) => p.outboxBytes],
  ['outbox_messages', 'Messages kept until the event plane confirms them', (p) => p.outboxMessages],
];

export function registerKvrelayMetrics(registry: Registry, source: MetricsSource): void {
  registerRankCounters(registry, source);
  registerEngineEvents(registry, source);
  registerRankGauges(registry, source);
  registerLatency(registry, source);
  registerPlane(registry, source);
  registerProcess(registry, source);
}

function registerRankCounters(registry: Registry, source: MetricsSource): void {
  for (const [name, help, read] of RANK_COUNTERS) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['dp_rank'] as const };
    scrapedCounter(registry, family, (add) => {
      for (const relay of source.relays()) add(rankLabel(relay), read(relay.metrics));
    });
  }
  for (const [name, label, help, read] of LABELLED_RANK_COUNTERS) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['dp_rank', label] };
    scrapedCounter(registry, family, (add) => {
      for (const relay of source.relays()) {
        for (const [value, count] of Object.entries(read(relay.metrics))) {
          add({ ...rankLabel(relay), [label]: value }, count);
        }
      }
    });
  }
}

function registerEngineEvents(registry: Registry, source: MetricsSource): void {
  const family = {
    name: 'kvrelay_engine_events_total',
    help: 'Events received from the engine, by the medium they name',
    labelNames: ['dp_rank', 'event_type', 'medium'] as const,
  };
  scrapedCounter(registry, family, (add) => {
    for (const relay of source.relays()) {
      for (const event_type of EVENT_TYPES) {
        const counts = relay.metrics.engineEvents[event_type];
        for (const medium of MEDIUM_LABELS) {
          add({ ...rankLabel(relay), event_type, medium }, counts[medium]);
        }
      }
    }
  });
}

function registerRankGauges(registry: Registry, source: MetricsSource): void {
  const connected = {
    name: 'kvrelay_engine_connected',
    help: 'Whether the event socket of the engine is connected',
    labelNames: ['dp_rank'] as const,
  };
  scrapedGauge(registry, connected, (add) => {
    for (const relay of source.relays()) add(rankLabel(relay), Number(relay.engineConnected));
  });
  const degraded = {
    name: 'kvrelay_degraded',
    help: 'Whether the relay is degraded for this reason',
    labelNames: ['dp_rank', 'reason'] as const,
  };
  scrapedGauge(registry, degraded, (add) => {
    for (const relay of source.relays()) {
      for (const reason of DEGRADED_CODES) {
        add({ ...rankLabel(relay), reason }, Number(relay.degraded.includes(reason)));
      }
    }
  });
  for (const [name, help, read] of RANK_BLOCK_GAUGES) {
    const labelNames = ['dp_rank', 'storage_tier'] as const;
    scrapedGauge(registry, { name: `kvrelay_${name}`, help, labelNames }, (add) => {
      for (const relay of source.relays()) {
        for (const [storage_tier, blocks] of Object.entries(read(relay.metrics))) {
          add({ ...rankLabel(relay), storage_tier }, blocks);
        }
      }
    });
  }
}

function registerLatency(registry: Registry, source: MetricsSource): void {
  const family = {
    name: 'kvrelay_relay_latency_seconds',
    help: 'Time from the arrival of an engine message to its hand-over to the event plane',
    labelNames: ['dp_rank'] as const,
  };
  scrapedHistogram(registry, family, (add) => {
    for (const relay of source.relays()) add(rankLabel(relay), relay.metrics.relayLatencySeconds);
  });
}

function registerPlane(registry: Registry, source: MetricsSource): void {
  for (const [name, help, read] of PLANE_COUNTERS) {
    const family = { name: `kvrelay_${name}`, help, labelNames: [] };
    scrapedCounter(registry, family, (add) => add({}, read(source.plane())));
  }
  for (const [name, help, read] of PLANE_GAUGES) {
    const family = { name: `kvrelay_${name}`, help, labelNames: [] };
    scrapedGauge(registry, family, (add) => add({}, read(source.plane())));
  }
}

function registerProcess(registry: Registry, source: MetricsSource): void {
  const lag = {
    name: 'kvrelay_event_loop_lag_seconds',
    help: 'The most that the event loop ran late since the last scrape',
    labelNames: [],
  };
  scrapedGauge(registry, lag, (add) => add({}, source.eventLoopLagSeconds()));
  const build = {
    name: 'kvrelay_build_info',
    help: 'Always 1; the label names the running version',
    labelNames: ['version'] as const,
  };
  scrapedGauge(registry, build, (add) => add({ version: source.version }, 1));
}

function rankLabel(relay: RelayReading): { dp_rank: string } {
  return { dp_rank: String(relay.dpRank) };
}
