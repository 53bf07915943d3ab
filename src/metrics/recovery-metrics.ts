/** What routers' recovery queries show in `/metrics`: a rank's answers, and the service of the process. */
import type { Registry } from 'prom-client';
import type { MetricsSource, RelayReading } from './metrics-source.ts';
import type { RecoveryCounts } from './recovery-counts.ts';
import { scrapedCounter, scrapedGauge, scrapedHistogram } from './scraped.ts';

const REASON_COUNTERS: readonly (readonly [
  name: string,
  help: string,
  read: (counts: RecoveryCounts) => Readonly<Record<string, number>>,
])[] = [
  [
    'recovery_refused_requests_total',
    'Requests of routers refused in their acknowledgement',
    (counts) => counts.refusedRequests,
  ],
  [
    'recovery_dropped_clients_total',
    'Connections to the request plane closed from this side',
    (counts) => counts.droppedClients,
  ],
  [
    'recovery_failed_answers_total',
    'Answers that did not reach the router',
    (counts) => counts.failedAnswers,
  ],
];

export function registerRecoveryMetrics(registry: Registry, source: MetricsSource): void {
  registerRanks(registry, source);
  for (const [name, help, read] of REASON_COUNTERS) {
    const family = { name: `kvrelay_${name}`, help, labelNames: ['reason'] as const };
    scrapedCounter(registry, family, (add) => {
      for (const [reason, count] of Object.entries(read(source.recovery()))) add({ reason }, count);
    });
  }
  const clients = {
    name: 'kvrelay_recovery_clients',
    help: 'Connections to the request plane',
    labelNames: [],
  };
  scrapedGauge(registry, clients, (add) => add({}, source.recovery().clients));
  const answers = {
    name: 'kvrelay_recovery_answers_in_flight',
    help: 'Answers on their way to routers',
    labelNames: [],
  };
  scrapedGauge(registry, answers, (add) => add({}, source.recovery().answersInFlight));
}

function registerRanks(registry: Registry, source: MetricsSource): void {
  const queries = {
    name: 'kvrelay_recovery_queries_total',
    help: 'Queries of routers for events they missed, by the answer',
    labelNames: ['dp_rank', 'answer'] as const,
  };
  scrapedCounter(registry, queries, (add) => {
    for (const relay of source.relays()) {
      for (const [answer, count] of Object.entries(relay.metrics.recoveryQueries)) {
        add({ ...rankLabel(relay), answer }, count);
      }
    }
  });
  const resyncs = {
    name: 'kvrelay_source_resyncs_total',
    help: 'Times the source was announced anew, so that routers take a fresh dump',
    labelNames: ['dp_rank'] as const,
  };
  scrapedCounter(registry, resyncs, (add) => {
    for (const relay of source.relays()) add(rankLabel(relay), relay.metrics.sourceResyncs);
  });
  const hold = {
    name: 'kvrelay_output_hold_seconds',
    help: 'Time that output was held while an answer was on its way to a router',
    labelNames: ['dp_rank'] as const,
  };
  scrapedHistogram(registry, hold, (add) => {
    for (const relay of source.relays()) add(rankLabel(relay), relay.metrics.outputHoldSeconds);
  });
}

function rankLabel(relay: RelayReading): { dp_rank: string } {
  return { dp_rank: String(relay.dpRank) };
}
