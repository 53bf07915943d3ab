/** What LMCache's MP servers hold and report, on the metrics page; there only where they post here. */
import type { Registry } from 'prom-client';
import type { CoordinatorMetrics } from './coordinator-metrics.ts';
import { scrapedCounter, scrapedGauge } from './scraped.ts';

export interface CoordinatorReading {
  readonly counts: CoordinatorMetrics;
  readonly untrackedKeys: number;
  readonly instances: number;
  readonly compartments: readonly CompartmentReading[];
}

/** One tier and backend of one server, or of a pool that several mount. */
export interface CompartmentReading {
  /** Empty for a pool. */
  readonly instanceId: string;
  readonly tier: string;
  readonly backend: string;
  readonly chunks: number;
  /** Chunk, rank and object group. */
  readonly keys: number;
  readonly bytes: number;
  /** Null while none is declared. */
  readonly capacityBytes: number | null;
}

const COMPARTMENT_GAUGES: readonly (readonly [
  name: string,
  help: string,
  read: (reading: CompartmentReading) => number | null,
])[] = [
  ['held_chunks', 'Chunks that LMCache holds', (r) => r.chunks],
  ['held_keys', 'Keys that LMCache holds: chunk, rank and object group', (r) => r.keys],
  ['held_bytes', 'Bytes that LMCache holds, as it has reported them', (r) => r.bytes],
  ['capacity_bytes', 'Bytes that LMCache has declared it can hold', (r) => r.capacityBytes],
];

const COUNTERS: readonly (readonly [
  name: string,
  help: string,
  read: (reading: CoordinatorReading) => number,
])[] = [
  ['coordinator_requests', 'Requests to the coordinator endpoint', (r) => r.counts.requests],
  ['accessed_keys', 'Keys of LMCache that were read', (r) => r.counts.accessedKeys],
  ['declarations', 'Declarations of a capacity', (r) => r.counts.declarations],
  ['expired_instances', 'Servers that were silent too long', (r) => r.counts.expiredInstances],
  [
    'crowded_out_instances',
    'Servers given up, and batches of new ones dropped, because there were too many',
    (r) => r.counts.crowdedOutInstances,
  ],
  ['untracked_keys', 'Keys that found no room and are not followed', (r) => r.untrackedKeys],
];

const LABELLED = [
  ['coordinator_batches_total', 'outcome', 'Batches of events', 'batches'],
  ['coordinator_refused_requests_total', 'reason', 'Requests refused, or not read', 'refusals'],
  ['coordinator_forwards_total', 'outcome', 'Requests to the coordinator behind', 'forwards'],
] as const;

export function registerCoordinatorMetrics(
  registry: Registry,
  read: () => CoordinatorReading | null,
): void {
  for (const [name, help, numberOf] of COMPARTMENT_GAUGES) {
    const labelNames = ['instance_id', 'tier', 'backend'] as const;
    scrapedGauge(registry, { name: `kvrelay_lmcache_${name}`, help, labelNames }, (add) => {
      for (const one of read()?.compartments ?? []) {
        const value = numberOf(one);
        const { instanceId: instance_id, tier, backend } = one;
        if (value !== null) add({ instance_id, tier, backend }, value);
      }
    });
  }
  const instances = { name: 'kvrelay_lmcache_instances', help: 'Servers of LMCache that post' };
  scrapedGauge(registry, { ...instances, labelNames: [] }, (add) => {
    const reading = read();
    if (reading !== null) add({}, reading.instances);
  });
  for (const [name, help, numberOf] of COUNTERS) {
    const family = { name: `kvrelay_lmcache_${name}_total`, help, labelNames: [] };
    scrapedCounter(registry, family, (add) => {
      const reading = read();
      if (reading !== null) add({}, numberOf(reading));
    });
  }
  for (const [name, label, help, field] of LABELLED) {
    const family = { name: `kvrelay_lmcache_${name}`, help, labelNames: [label] };
    scrapedCounter<string>(registry, family, (add) => {
      const counts: Readonly<Record<string, number>> = read()?.counts[field] ?? {};
      for (const [value, count] of Object.entries(counts)) add({ [label]: value }, count);
    });
  }
}
