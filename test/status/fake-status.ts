import { describeDegraded } from '../../src/metrics/degraded.ts';
import type { CoordinatorStatus } from '../../src/status/coordinator-status.ts';
import type { LmcacheStatus } from '../../src/status/lmcache-status.ts';
import type {
  RankStatus,
  Readiness,
  SourceStatus,
  StatusSnapshot,
  StatusSource,
} from '../../src/status/status-source.ts';

export function rankStatus(dpRank: number, overrides: Partial<RankStatus> = {}): RankStatus {
  return {
    dp_rank: dpRank,
    worker_id: '18446744073709551615',
    publisher_id: '9007199254740991',
    plane_endpoint: 'tcp://127.0.0.1:5570',
    state: 'flowing',
    degraded: [],
    engine: {
      endpoint: `tcp://127.0.0.1:${5557 + dpRank}`,
      connected: true,
      last_seq: '18446744073709551614',
      emitted_seq: '18446744073709551614',
      last_batch_age_ms: 42,
      replay: 'idle',
    },
    counters: {
      received: 1000,
      accepted: 900,
      filtered: 100,
      coalesced: 300,
      published_events: 550,
      published_blocks: 4400,
      suppressed_removes: 50,
      missing_batches: 0,
      lost_batches: 0,
      heartbeats: 0,
      duplicate_batches: 0,
      engine_restarts: 0,
      malformed: 0,
    },
    filtered_by_reason: { non_main_attention_group: 90, unknown_medium: 10 },
    latency_ms: { p50: 0.1, p99: 2.5 },
    queues: { batching: 0, outbox: 0 },
    blocks: { device: 120_000, host_pinned: 4000, disk: 0, external: 0 },
    last_event_id: '550',
    block_size: { configured: 16, seen: [16] },
    ...overrides,
  };
}

export function sourceStatus(overrides: Partial<SourceStatus> = {}): SourceStatus {
  return {
    source: 'mooncake',
    endpoint: 'tcp://127.0.0.1:5560',
    connected: true,
    suspect: false,
    degraded: [],
    objects: 1200,
    last_seq: '42',
    last_message_age_ms: 7,
    held_messages: 0,
    counters: {
      connects: 1,
      messages: 42,
      received: 1300,
      applied: 1250,
      repeated: 50,
      lost_messages: 0,
      restarts: 0,
      malformed: 0,
      dropped_events: 0,
      invalidated_objects: 0,
    },
    reconciliation: null,
    placement: null,
    ...overrides,
  };
}

export function snapshot(overrides: Partial<StatusSnapshot> = {}): StatusSnapshot {
  return {
    version: '0.1.0',
    started_at: '2025-01-02T03:04:05.678Z',
    uptime_s: 12.5,
    compat: 'safe',
    state: 'ready',
    settings: { engine: 'vllm', engineTopic: '', natsPassword: '***', replayEndpoint: null },
    plane: {
      kind: 'zmq',
      connected: true,
      endpoint: 'tcp://127.0.0.1:5570',
      outbox_bytes: 0,
      outbox_messages: 0,
    },
    recovery: {
      request_plane: 'tcp',
      endpoint: '127.0.0.1:41311',
      clients: 1,
      answers_in_flight: 0,
    },
    ranks: [rankStatus(0)],
    worker_load: null,
    sources: [],
    lmcache: null,
    lmcache_coordinator: null,
    objects: null,
    ...overrides,
  };
}

export function lmcacheStatus(overrides: Partial<LmcacheStatus> = {}): LmcacheStatus {
  const byMinute = Array.from({ length: 60 }, (_, minute) => (minute < 58 ? null : 0.75));
  const share = { requested_tokens: 64, hit_tokens: 48 };
  return {
    endpoint: 'tcp://127.0.0.1:5571',
    connected: true,
    replay: 'idle',
    version: '0.5.6',
    last_seq: '7',
    last_message_age_ms: 20,
    degraded: [],
    events: 1234,
    losses: { lost_messages: 0, bridge_dropped: 0, bus_dropped: 0, malformed: 0, restarts: 0 },
    requests: { in_flight: 2, open_transfers: 1, completed: 9, timed_out: 0 },
    hit_rate: { minute: 0.75, ten_minutes: null, hour: null, total: 0.5, by_minute: byMinute },
    adapters: [
      {
        l2_name: 'fs',
        stored_bytes: 2048,
        loaded_bytes: 1024,
        store_tasks: 2,
        load_tasks: 1,
        failed_stores: 3,
        store_gb_per_s: 1.5,
        load_gb_per_s: null,
      },
    ],
    l1: { read: 1, written: 2, evicted: 3 },
    l2: { evicted: 6 },
    failures: { 'l1_read_failure l1_retrieve not_found': 4 },
    models: [{ name: 'm1', ...share }],
    salts: [{ name: '', ...share }],
    contracts: {
      violations: [{ event: 'L1_READ_FINISHED', field: 'keys', kind: 'missing', count: 5 }],
      additive_keys: 0,
      unknown_events: 0,
      unknown_types: [],
    },
    ...overrides,
  };
}

/** What it answers is set by assignment, between requests. */
export class FakeStatus implements StatusSource {
  snapshot: StatusSnapshot = snapshot();
  isLive = true;
  readiness: Readiness = { ready: true, waitingFor: [] };

  status(): StatusSnapshot {
    return this.snapshot;
  }

  live(): boolean {
    return this.isLive;
  }

  ready(): Readiness {
    return this.readiness;
  }

  degrade(): void {
    const degraded = [describeDegraded('engine_gap')];
    this.snapshot = snapshot({ state: 'degraded', ranks: [rankStatus(3, { degraded })] });
  }
}

export function coordinatorStatus(overrides: Partial<CoordinatorStatus> = {}): CoordinatorStatus {
  return {
    endpoint: 'http://127.0.0.1:9300',
    forward: { endpoint: 'http://127.0.0.1:9301', failures: 2, last_answer_age_ms: null },
    instance_count: 1,
    instances: [
      {
        instance_id: 'mp-1',
        incarnation: 1000,
        last_seq: 7,
        whole: false,
        left: false,
        last_heard_age_ms: 1200,
        lost_batches: 3,
        restarts: 0,
      },
    ],
    compartment_count: 2,
    compartments: [
      {
        instance_id: 'mp-1',
        tier: 'l1',
        backend: 'dram',
        chunks: 1500,
        keys: 3000,
        bytes: 3072,
        capacity_bytes: 4096,
      },
      {
        instance_id: null,
        tier: 'l2',
        backend: 's3',
        chunks: 4,
        keys: 4,
        bytes: 1024,
        capacity_bytes: null,
      },
    ],
    keys: 3004,
    untracked_keys: 0,
    batches: {},
    refused: {},
    ...overrides,
  };
}
