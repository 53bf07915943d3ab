/**
 * Dynamo's five publisher counters under their own names, so that dashboards made for its worker
 * read a relay too.
 *
 * Labels   Dynamo's constant ones on every series, plus `dp_rank`.
 * Appears  a vector's series with its first increment, as there; the plain counter from the start.
 * Source   ai-dynamo/dynamo 1.6.1, lib/llm/src/kv_router/publisher; `conversion_issues` has no path
 *          to an increment there either.
 */
import type { Registry } from 'prom-client';
import type { MetricsSource, WorkerLabels } from './metrics-source.ts';
import { EVENT_TYPES, FILTER_REASONS } from './relay-metrics.ts';
import { type AddSample, scrapedCounter } from './scraped.ts';

const PREFIX = 'dynamo_component_kv_publisher_';
const CONSTANT_LABELS = ['dynamo_namespace', 'dynamo_component', 'worker_id', 'dp_rank'] as const;
type ConstantLabel = (typeof CONSTANT_LABELS)[number];

export function registerDynamoMetrics(registry: Registry, source: MetricsSource): void {
  registerDroppedEvents(registry, source);
  registerEvents(registry, source);
  registerFilteredEvents(registry, source);
  registerConversionIssues(registry);
  registerSuspiciousEvents(registry, source);
}

function registerDroppedEvents(registry: Registry, source: MetricsSource): void {
  const family = {
    name: `${PREFIX}engines_dropped_events_total`,
    help: 'Events the engine dropped before they reached the publisher, from gaps in its numbering',
    labelNames: CONSTANT_LABELS,
  };
  scrapedCounter(registry, family, (add) => {
    for (const { dpRank, metrics } of source.relays()) {
      add(constantLabels(source.labels, dpRank), metrics.droppedEvents);
    }
  });
}

function registerEvents(registry: Registry, source: MetricsSource): void {
  const family = {
    name: `${PREFIX}zmq_events_total`,
    help: 'Engine events received, and accepted by the filter',
    labelNames: [...CONSTANT_LABELS, 'stage', 'event_type'] as const,
  };
  scrapedCounter(registry, family, (add) => {
    for (const { dpRank, metrics } of source.relays()) {
      const labels = constantLabels(source.labels, dpRank);
      for (const stage of ['received', 'accepted'] as const) {
        for (const event_type of EVENT_TYPES) {
          addMoved(add, { ...labels, stage, event_type }, metrics[stage][event_type]);
        }
      }
    }
  });
}

function registerFilteredEvents(registry: Registry, source: MetricsSource): void {
  const family = {
    name: `${PREFIX}zmq_filtered_events_total`,
    help: 'Engine events filtered out, by reason',
    labelNames: [...CONSTANT_LABELS, 'event_type', 'reason'] as const,
  };
  scrapedCounter(registry, family, (add) => {
    for (const { dpRank, metrics } of source.relays()) {
      const labels = constantLabels(source.labels, dpRank);
      for (const event_type of EVENT_TYPES) {
        for (const reason of FILTER_REASONS) {
          addMoved(add, { ...labels, event_type, reason }, metrics.filtered[event_type][reason]);
        }
      }
    }
  });
}

function registerConversionIssues(registry: Registry): void {
  const family = {
    name: `${PREFIX}zmq_conversion_issues_total`,
    help: 'Accepted engine events that could not be converted',
    labelNames: [...CONSTANT_LABELS, 'event_type', 'reason'] as const,
  };
  scrapedCounter(registry, family, () => {});
}

function registerSuspiciousEvents(registry: Registry, source: MetricsSource): void {
  const family = {
    name: `${PREFIX}zmq_suspicious_events_total`,
    help: 'Engine events of a doubtful shape, by reason',
    labelNames: [...CONSTANT_LABELS, 'event_type', 'reason'] as const,
  };
  scrapedCounter(registry, family, (add) => {
    for (const { dpRank, metrics } of source.relays()) {
      const labels = constantLabels(source.labels, dpRank);
      const emptyStore = { ...labels, event_type: 'stored', reason: 'empty_store_blocks' };
      addMoved(add, emptyStore, metrics.emptyStores);
    }
  });
}

function constantLabels(labels: WorkerLabels, dpRank: number): Record<ConstantLabel, string> {
  return {
    dynamo_namespace: sanitized(labels.namespace),
    dynamo_component: sanitized(labels.component),
    worker_id: labels.workerIdHex,
    dp_rank: String(dpRank),
  };
}

function sanitized(labelValue: string): string {
  return labelValue.replace(/[^A-Za-z0-9_]/g, '_');
}

function addMoved<Label extends string>(
  add: AddSample<Label>,
  labels: Readonly<Record<Label, string>>,
  value: number,
): void {
  if (value > 0) add(labels, value);
}
