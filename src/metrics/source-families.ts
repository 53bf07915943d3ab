/** What store sources and their object stream expose; there only where a store is configured. */
import type { Registry } from 'prom-client';
import type { MetricsSource, ObjectStreamReading, StoreReading } from './metrics-source.ts';
import { scrapedCounter, scrapedGauge } from './scraped.ts';
import type { SourceMetrics } from './source-metrics.ts';

type Row<Reading> = readonly [name: string, help: string, read: (reading: Reading) => number];

const SOURCE_COUNTERS: readonly Row<SourceMetrics>[] = [
  [
    'source_connects_total',
    'Attempts to connect to the event socket of a store',
    (m) => m.connects,
  ],
  ['source_messages_total', 'Messages received from a store', (m) => m.messages],
  ['source_bytes_total', 'Payload bytes received from a store', (m) => m.bytes],
  [
    'source_lost_messages_total',
    'Numbers missing in the numbering of a store: lost messages, and events it dropped',
    (m) => m.lostMessages,
  ],
  ['source_restarts_total', 'Restarts of a store', (m) => m.restarts],
  ['source_asked_keys_total', 'Keys that a store was asked about', (m) => m.askedKeys],
  [
    'source_corrected_objects_total',
    "Objects that a store's own answer changed",
    (m) => m.correctedObjects,
  ],
  [
    'source_invalidated_objects_total',
    'Objects given up because nobody could say whether they are still there',
    (m) => m.invalidatedObjects,
  ],
  [
    'source_broken_holds_total',
    'Answers of a store given up because more came meanwhile than could be held',
    (m) => m.brokenHolds,
  ],
];

const SOURCE_GAUGES: readonly Row<StoreReading>[] = [
  [
    'source_connected',
    'Whether the event socket of a store is connected',
    (r) => Number(r.connected),
  ],
  ['source_suspect', 'Whether what is held of a store may be wrong', (r) => Number(r.suspect)],
  ['source_objects', 'Objects held of a store', (r) => r.objects],
];

const STREAM_COUNTERS: readonly Row<ObjectStreamReading>[] = [
  [
    'object_events_total',
    'Object events handed to the event plane',
    (r) => r.metrics.publishedEvents,
  ],
  ['object_messages_total', 'Messages of object events', (r) => r.metrics.publishedMessages],
  [
    'object_resent_messages_total',
    'Those sent again after a reconnect',
    (r) => r.metrics.resentMessages,
  ],
  [
    'untracked_objects_total',
    'Objects that found no room and are not held',
    (r) => r.untrackedObjects,
  ],
  [
    'unkept_object_attributes_total',
    'Objects that are held without what else is known of them',
    (r) => r.unkeptAttributes,
  ],
];

const PLACEMENT_COUNTERS: readonly Row<ObjectStreamReading>[] = [
  [
    'placement_matched_keys_total',
    'Objects whose key says which block they hold',
    (r) => r.matchedKeys,
  ],
  [
    'placement_unmatched_keys_total',
    'Objects whose key matches no pattern',
    (r) => r.unmatchedKeys,
  ],
  [
    'placement_unkept_blocks_total',
    'Blocks of the engine that found no room to be remembered',
    (r) => r.unkeptBlocks,
  ],
];

const STREAM_GAUGES: readonly Row<ObjectStreamReading>[] = [
  ['placement_placed_blocks', 'Blocks that routers are told a store holds', (r) => r.placedBlocks],
  ['object_state_bytes', 'Memory of the tables of objects', (r) => r.bytes],
  [
    'object_buffered_events',
    'Object events kept for consumers that missed some',
    (r) => r.bufferedEvents,
  ],
];

export function registerSourceMetrics(registry: Registry, source: MetricsSource): void {
  for (const [name, help, read] of SOURCE_COUNTERS) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['source'] as const };
    scrapedCounter(registry, family, (add) => {
      for (const one of source.stores()) add({ source: one.name }, read(one.metrics));
    });
  }
  for (const [name, help, read] of SOURCE_GAUGES) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['source'] as const };
    scrapedGauge(registry, family, (add) => {
      for (const one of source.stores()) add({ source: one.name }, read(one));
    });
  }
  registerLabelled(registry, source);
  registerStream(registry, source);
}

function registerLabelled(registry: Registry, source: MetricsSource): void {
  const events = {
    name: 'kvrelay_source_events_total',
    help: 'Events of a store: received, then applied where they changed what is held, else repeated',
    labelNames: ['source', 'event_type', 'stage'] as const,
  };
  scrapedCounter(registry, events, (add) => {
    for (const { name, metrics, received } of source.stores()) {
      for (const [event_type, count] of received ?? [])
        add({ source: name, event_type, stage: 'received' }, count);
      if (received !== undefined) continue;
      for (const [event_type, stages] of Object.entries(metrics.events)) {
        for (const [stage, count] of Object.entries(stages)) {
          add({ source: name, event_type, stage }, count);
        }
      }
    }
  });
  const labelled = [
    ['source_malformed_messages_total', 'reason', 'Messages of a store that are none', 'malformed'],
    ['source_dropped_events_total', 'reason', 'Events of a store left out', 'droppedEvents'],
    [
      'source_reconciliations_total',
      'outcome',
      'Comparisons of what is held with what the store itself answers',
      'reconciliations',
    ],
  ] as const;
  for (const [name, label, help, field] of labelled) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['source', label] };
    scrapedCounter(registry, family, (add) => {
      for (const one of source.stores()) {
        const counts: Readonly<Record<string, number>> = one.metrics[field];
        for (const [value, count] of Object.entries(counts)) {
          add({ source: one.name, [label]: value }, count);
        }
      }
    });
  }
}

function registerStream(registry: Registry, source: MetricsSource): void {
  for (const [name, help, read] of [...STREAM_COUNTERS, ...PLACEMENT_COUNTERS]) {
    scrapedCounter(registry, { name: `kvrelay_${name}`, help, labelNames: [] }, (add) => {
      const reading = source.objectStream();
      if (reading !== null) add({}, read(reading));
    });
  }
  for (const [name, help, read] of STREAM_GAUGES) {
    scrapedGauge(registry, { name: `kvrelay_${name}`, help, labelNames: [] }, (add) => {
      const reading = source.objectStream();
      if (reading !== null) add({}, read(reading));
    });
  }
  const failures = {
    name: 'kvrelay_object_publish_failures_total',
    help: 'Messages of object events that could not be published',
    labelNames: ['reason'] as const,
  };
  scrapedCounter(registry, failures, (add) => {
    const counts: Readonly<Record<string, number>> =
      source.objectStream()?.metrics.publishFailures ?? {};
    for (const [reason, count] of Object.entries(counts)) add({ reason }, count);
  });
}
