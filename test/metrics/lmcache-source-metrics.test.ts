/** What is counted of LMCache's bridge: names, types and labels, and nothing at all without one. */
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { LmcacheSeries } from '../../src/metrics/lmcache-series.ts';
import {
  type LmcacheSourceReading,
  registerLmcacheSource,
} from '../../src/metrics/lmcache-source-metrics.ts';
import { pageOf, parsePage } from '../support/prometheus-page.ts';

const series = new LmcacheSeries(1);
for (const model_name of ['one', 'two']) series.add('lookups', 1, { model_name });

const READING: LmcacheSourceReading = {
  series,
  bus: null,
  failing: false,
  inFlight: 1,
  openTransfers: 2,
  bridgeDropped: 7,
  bridgeUnencodable: 8,
  outOfOrder: 11,
  untracked: 12,
  unpaired: { timeout: 14 },
  requests: { completed: 15 },
  additiveKeys: new Map([['MP_REQUEST_START', 17]]),
  violations: [{ event: 'L1_READ_FAILED', field: 'reason', kind: 'value', count: 18 }],
};

async function pageWith(reading: LmcacheSourceReading | null) {
  const registry = new Registry();
  registerLmcacheSource(registry, () => reading);
  return parsePage(await registry.metrics());
}

test('each count is in a series of its own', async () => {
  const page = pageOf(await pageWith(READING), 'kvrelay_');
  expect(Object.fromEntries(page.series)).toEqual({
    'kvrelay_lmcache_failing{}': 0,
    'kvrelay_lmcache_requests_in_flight{}': 1,
    'kvrelay_lmcache_open_transfers{}': 2,
    'kvrelay_lmcache_bridge_dropped_events_total{}': 7,
    'kvrelay_lmcache_bridge_unencodable_events_total{}': 8,
    'kvrelay_lmcache_out_of_order_sentinels_total{}': 11,
    'kvrelay_lmcache_untracked_lives_total{}': 12,
    'kvrelay_lmcache_unpaired_events_total{reason="timeout"}': 14,
    'kvrelay_lmcache_requests_total{outcome="completed"}': 15,
    'kvrelay_lmcache_additive_keys_total{event_type="MP_REQUEST_START"}': 17,
    'kvrelay_lmcache_contract_violations_total{event_type="L1_READ_FAILED",field="reason",kind="value"}': 18,
    'kvrelay_lmcache_label_overflows_total{label="model_name"}': 1,
  });
  for (const [name, type] of page.types)
    expect([name, type]).toEqual([name, name.endsWith('_total') ? 'counter' : 'gauge']);
});

test('without a bridge there is no series', async () => {
  expect([...(await pageWith(null)).series]).toEqual([]);
});
