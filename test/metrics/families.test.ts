/**
 * Every family of `/metrics` but Node's own, with its type and its labels: what dashboards and
 * alarms are written against. A name may be added here, never changed.
 */
import { expect, test } from 'vitest';
import { CoordinatorMetrics } from '../../src/metrics/coordinator-metrics.ts';
import { LoadMetrics } from '../../src/metrics/load-metrics.ts';
import type { MetricsSource } from '../../src/metrics/metrics-source.ts';
import { ObjectStreamMetrics } from '../../src/metrics/object-metrics.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import { EVENT_TYPES, FILTER_REASONS, RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { SourceMetrics } from '../../src/metrics/source-metrics.ts';
import { parseFamilies } from './exposition.ts';
import { relay, sourceOf } from './fake-source.ts';

const DYNAMO_LABELS = 'dynamo_namespace dynamo_component worker_id dp_rank';

const FAMILIES = `
  dynamo_component_kv_publisher_engines_dropped_events_total   counter   ${DYNAMO_LABELS}
  dynamo_component_kv_publisher_zmq_events_total               counter   ${DYNAMO_LABELS} stage event_type
  dynamo_component_kv_publisher_zmq_filtered_events_total      counter   ${DYNAMO_LABELS} event_type reason
  dynamo_component_kv_publisher_zmq_suspicious_events_total    counter   ${DYNAMO_LABELS} event_type reason
  kvrelay_engine_connected                                     gauge     dp_rank
  kvrelay_engine_batches_total                                 counter   dp_rank
  kvrelay_engine_bytes_total                                   counter   dp_rank
  kvrelay_malformed_messages_total                             counter   dp_rank reason
  kvrelay_dropped_events_total                                 counter   dp_rank reason
  kvrelay_engine_missing_batches_total                         counter   dp_rank
  kvrelay_engine_lost_batches_total                            counter   dp_rank
  kvrelay_engine_duplicate_batches_total                       counter   dp_rank
  kvrelay_engine_unheld_batches_total                          counter   dp_rank
  kvrelay_engine_replays_total                                 counter   dp_rank outcome
  kvrelay_engine_restarts_total                                counter   dp_rank
  kvrelay_foreign_rank_batches_total                           counter   dp_rank
  kvrelay_engine_events_total                                  counter   dp_rank event_type medium
  kvrelay_ignored_fields_total                                 counter   dp_rank reason
  kvrelay_coalesced_events_total                               counter   dp_rank
  kvrelay_suppressed_removes_total                             counter   dp_rank
  kvrelay_cleared_total                                        counter   dp_rank cause
  kvrelay_live_blocks                                          gauge     dp_rank storage_tier
  kvrelay_tracked_blocks                                       gauge     dp_rank storage_tier
  kvrelay_heartbeats_total                                     counter   dp_rank
  kvrelay_published_messages_total                             counter   dp_rank
  kvrelay_published_bytes_total                                counter   dp_rank
  kvrelay_published_events_total                               counter   dp_rank event_type
  kvrelay_published_blocks_total                               counter   dp_rank event_type
  kvrelay_publish_failures_total                               counter   dp_rank reason
  kvrelay_resent_messages_total                                counter   dp_rank
  kvrelay_relay_latency_seconds                                histogram dp_rank
  kvrelay_degraded                                             gauge     dp_rank reason
  kvrelay_plane_connected                                      gauge
  kvrelay_outbox_bytes                                         gauge
  kvrelay_outbox_messages                                      gauge
  kvrelay_plane_disconnects_total                              counter
  kvrelay_plane_reconnects_total                               counter
  kvrelay_plane_refused_subscribers_total                      counter
  kvrelay_discovery_announcements_total                        counter
  kvrelay_discovery_ambiguities_total                          counter
  kvrelay_discovery_evicted_records_total                      counter
  kvrelay_discovery_faults_total                               counter   reason
  kvrelay_engine_scrapes_total                                 counter
  kvrelay_engine_scrape_faults_total                           counter   reason
  kvrelay_engine_kv_used_blocks                                gauge     dp_rank
  kvrelay_load_messages_total                                  counter
  kvrelay_load_publish_failures_total                          counter   reason
  kvrelay_recovery_queries_total                               counter   dp_rank answer
  kvrelay_source_resyncs_total                                 counter   dp_rank
  kvrelay_output_hold_seconds                                  histogram dp_rank
  kvrelay_recovery_refused_requests_total                      counter   reason
  kvrelay_recovery_dropped_clients_total                       counter   reason
  kvrelay_recovery_failed_answers_total                        counter   reason
  kvrelay_recovery_clients                                     gauge
  kvrelay_recovery_answers_in_flight                           gauge
  kvrelay_source_connects_total                                counter   source
  kvrelay_source_messages_total                                counter   source
  kvrelay_source_bytes_total                                   counter   source
  kvrelay_source_lost_messages_total                           counter   source
  kvrelay_source_restarts_total                                counter   source
  kvrelay_source_asked_keys_total                              counter   source
  kvrelay_source_corrected_objects_total                       counter   source
  kvrelay_source_invalidated_objects_total                     counter   source
  kvrelay_source_broken_holds_total                            counter   source
  kvrelay_source_connected                                     gauge     source
  kvrelay_source_suspect                                       gauge     source
  kvrelay_source_objects                                       gauge     source
  kvrelay_source_events_total                                  counter   source event_type stage
  kvrelay_source_malformed_messages_total                      counter   source reason
  kvrelay_source_dropped_events_total                          counter   source reason
  kvrelay_source_reconciliations_total                         counter   source outcome
  kvrelay_object_events_total                                  counter
  kvrelay_object_messages_total                                counter
  kvrelay_object_resent_messages_total                         counter
  kvrelay_untracked_objects_total                              counter
  kvrelay_unkept_object_attributes_total                       counter
  kvrelay_placement_matched_keys_total                         counter
  kvrelay_placement_unmatched_keys_total                       counter
  kvrelay_placement_unkept_blocks_total                        counter
  kvrelay_placement_placed_blocks                              gauge
  kvrelay_chunk_placed_blocks                                  gauge
  kvrelay_chunks                                               gauge
  kvrelay_chunks_waiting                                       gauge     reason
  kvrelay_chunks_refused_total                                 counter   reason
  kvrelay_chunk_forgotten_total                                counter   what
  kvrelay_object_state_bytes                                   gauge
  kvrelay_object_buffered_events                               gauge
  kvrelay_object_publish_failures_total                        counter   reason
  kvrelay_lmcache_held_chunks                                  gauge     instance_id tier backend
  kvrelay_lmcache_held_keys                                    gauge     instance_id tier backend
  kvrelay_lmcache_held_bytes                                   gauge     instance_id tier backend
  kvrelay_lmcache_capacity_bytes                               gauge     instance_id tier backend
  kvrelay_lmcache_instances                                    gauge
  kvrelay_lmcache_coordinator_requests_total                   counter
  kvrelay_lmcache_accessed_keys_total                          counter
  kvrelay_lmcache_declarations_total                           counter
  kvrelay_lmcache_expired_instances_total                      counter
  kvrelay_lmcache_crowded_out_instances_total                  counter
  kvrelay_lmcache_untracked_keys_total                         counter
  kvrelay_lmcache_coordinator_batches_total                    counter   outcome
  kvrelay_lmcache_coordinator_refused_requests_total           counter   reason
  kvrelay_lmcache_coordinator_forwards_total                   counter   outcome
  kvrelay_superseded_messages_total                            counter   dp_rank
  kvrelay_event_loop_lag_seconds                               gauge
  kvrelay_build_info                                           gauge     version
`;

/** Every counter of the one rank has moved, so that Dynamo's vectors are there too. */
function movedSource(): MetricsSource {
  const metrics = new RelayMetrics();
  for (const type of EVENT_TYPES) {
    metrics.received[type] = metrics.accepted[type] = 1;
    for (const reason of FILTER_REASONS) metrics.filtered[type][reason] = 1;
  }
  metrics.emptyStores = 1;
  const load = new LoadMetrics();
  load.kvUsedBlocks.set(0, 100);
  return sourceOf([relay(0, { metrics })], {
    load: () => load,
    stores: () => [
      {
        name: 'mooncake',
        metrics: new SourceMetrics(),
        connected: true,
        suspect: false,
        objects: 0,
      },
    ],
    coordinator: () => ({
      counts: new CoordinatorMetrics(),
      untrackedKeys: 0,
      instances: 1,
      compartments: [
        {
          instanceId: 'mp-1',
          tier: 'l1',
          backend: 'dram',
          chunks: 0,
          keys: 0,
          bytes: 0,
          capacityBytes: 1,
        },
      ],
    }),
    objectStream: () => ({
      metrics: new ObjectStreamMetrics(),
      objects: 0,
      bytes: 0,
      untrackedObjects: 0,
      unkeptAttributes: 0,
      bufferedEvents: 0,
      matchedKeys: 0,
      unmatchedKeys: 0,
      placedBlocks: 0,
      unkeptBlocks: 0,
    }),
    chunks: () => ({
      chunks: 0,
      placedBlocks: 0,
      waiting: { tokens: 0 },
      refused: { no_room: 0 },
      forgotten: { names: 0 },
    }),
  });
}

test('the families of /metrics have these names, types and labels, and there are no others', async () => {
  const text = await createRegistry(movedSource()).metrics();
  const exposed = parseFamilies(text)
    .filter(({ name }) => !/^(nodejs|process)_/.test(name))
    .map(({ name, type, labels }) => [name, type, ...[...labels].sort()].join(' '));
  const rows = FAMILIES.trim().split('\n');
  const expected = rows.map((row) => {
    const [name, type, ...labels] = row.trim().split(/\s+/);
    return [name, type, ...labels.sort()].join(' ');
  });
  expect(exposed.sort()).toEqual(expected.sort());
});

test("a counter, and nothing else, is named _total, Node's defaults included", async () => {
  for (const { name, type } of parseFamilies(await createRegistry(movedSource()).metrics())) {
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
  }
});
