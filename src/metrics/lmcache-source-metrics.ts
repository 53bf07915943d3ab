/** What is made of LMCache's bus, beside what every source counts; there only where a bridge is configured. */
import type { Registry } from 'prom-client';
import { type LmcacheReading, registerLmcacheMetrics } from './lmcache-exposition.ts';
import { type AddSample, type LabelSet, scrapedCounter, scrapedGauge } from './scraped.ts';

export interface LmcacheSourceReading extends LmcacheReading {
  /** Reads that a lookup had promised fail. */
  readonly failing: boolean;
  readonly inFlight: number;
  readonly openTransfers: number;
  readonly bridgeDropped: number;
  readonly bridgeUnencodable: number;
  readonly outOfOrder: number;
  readonly untracked: number;
  /** By reason. */
  readonly unpaired: Readonly<Record<string, number>>;
  readonly requests: Readonly<Record<string, number>>;
  readonly additiveKeys: ReadonlyMap<string, number>;
  readonly violations: readonly {
    readonly event: string;
    readonly field: string;
    readonly kind: string;
    readonly count: number;
  }[];
}

type NumberKey = {
  [Key in keyof LmcacheSourceReading]: LmcacheSourceReading[Key] extends number ? Key : never;
}[keyof LmcacheSourceReading];

const COUNTERS: readonly (readonly [name: string, help: string, read: NumberKey])[] = [
  ['bridge_dropped_events', "Events that the bridge's full queue refused", 'bridgeDropped'],
  ['bridge_unencodable_events', 'Events that the bridge could not send', 'bridgeUnencodable'],
  ['out_of_order_sentinels', 'Sentinels of requests that had not started', 'outOfOrder'],
  ['untracked_lives', 'Chunks and blocks that the full table follows no more', 'untracked'],
];

const GAUGES: readonly (readonly [
  name: string,
  help: string,
  read: (reading: LmcacheSourceReading) => number,
])[] = [
  ['failing', 'Whether reads fail that a lookup had promised', (r) => Number(r.failing)],
  ['requests_in_flight', 'Requests that have not ended', (r) => r.inFlight],
  ['open_transfers', 'Transfers on GPU streams that have not ended', (r) => r.openTransfers],
];

type Read = () => LmcacheSourceReading | null;

/** Whatever LMCache's own page has, and beside it what was made of the messages. */
export function registerLmcacheSource(registry: Registry, read: Read): void {
  registerLmcacheMetrics(registry, read);
  for (const [name, help, key] of COUNTERS) {
    scrapedCounter(registry, familyOf(`${name}_total`, help, []), (add) => {
      const reading = read();
      if (reading !== null) add({}, reading[key]);
    });
  }
  for (const [name, help, value] of GAUGES) {
    scrapedGauge(registry, familyOf(name, help, []), (add) => {
      const reading = read();
      if (reading !== null) add({}, value(reading));
    });
  }
  registerByReason(registry, read);
  registerContracts(registry, read);
}

function registerByReason(registry: Registry, read: Read): void {
  const rows = [
    ['unpaired_events_total', 'Starts given up, and ends without a start', 'reason', 'unpaired'],
    ['requests_total', 'Requests that are in flight no more', 'outcome', 'requests'],
  ] as const;
  for (const [name, help, label, key] of rows) {
    scrapedCounter(registry, familyOf(name, help, [label]), (add) => {
      addAll(add, label, Object.entries(read()?.[key] ?? {}));
    });
  }
  const overflows = familyOf('label_overflows_total', 'Increments in a shared series', ['label']);
  scrapedCounter(registry, overflows, (add) => {
    addAll(add, 'label', read()?.series.overflows ?? []);
  });
}

function registerContracts(registry: Registry, read: Read): void {
  const additive = familyOf(
    'additive_keys_total',
    'Keys of events that their contract does not have',
    ['event_type'],
  );
  scrapedCounter(registry, additive, (add) =>
    addAll(add, 'event_type', read()?.additiveKeys ?? []),
  );
  const violations = familyOf(
    'contract_violations_total',
    'Keys of events that break their contract: missing, of another type, or of another value',
    ['event_type', 'field', 'kind'],
  );
  scrapedCounter(registry, violations, (add) => {
    for (const { event, field, kind, count } of read()?.violations ?? [])
      add({ event_type: event, field, kind }, count);
  });
}

function familyOf<Label extends string>(name: string, help: string, labelNames: readonly Label[]) {
  return { name: `kvrelay_lmcache_${name}`, help, labelNames };
}

function addAll<Label extends string>(
  add: AddSample<Label>,
  label: Label,
  counts: Iterable<readonly [string, number]>,
): void {
  for (const [value, count] of counts) add({ [label]: value } as LabelSet<Label>, count);
}
