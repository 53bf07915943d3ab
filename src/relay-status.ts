/** One rank as `/api/status` shows it, read from its relay and its listener. */
import type { WorkerConfig } from './config/worker-config.ts';
import type { EngineListener } from './listener/engine-listener.ts';
import { totalOf } from './metrics/counts.ts';
import { type DegradedCode, describeDegraded } from './metrics/degraded.ts';
import type { PlaneReading } from './metrics/metrics-source.ts';
import { EVENT_TYPES, FILTER_REASONS, type FilterReason } from './metrics/relay-metrics.ts';
import type { Relay } from './relay.ts';
import { degradedCodes, hasOnlyFilteredEvents } from './relay-degraded.ts';
import type { RecoveryService } from './router/recovery/recovery-service.ts';
import type { OutputHold } from './sinks/output-hold.ts';
import type { Plane } from './sinks/plane.ts';
import type {
  PlaneStatus,
  RankCounters,
  RankState,
  RankStatus,
  RecoveryStatus,
} from './status/status-source.ts';

export function rankStatus(
  relay: Relay,
  listener: EngineListener,
  config: WorkerConfig,
  notices: readonly { readonly code: DegradedCode; readonly detail?: string }[],
): RankStatus {
  const { metrics } = relay;
  const latency = metrics.relayLatencySeconds;
  return {
    dp_rank: relay.dpRank,
    worker_id: relay.workerId?.toString() ?? null,
    publisher_id: relay.publisherId.toString(),
    plane_endpoint: relay.plane.endpoint,
    state: rankState(relay, listener),
    degraded: [
      ...degradedCodes(relay, listener.isConnected).map((code) => describeDegraded(code)),
      ...notices.map(({ code, detail }) => describeDegraded(code, detail)),
    ],
    engine: {
      endpoint: listener.endpoint,
      connected: listener.isConnected,
      last_seq: listener.lastSequence?.toString() ?? null,
      emitted_seq: listener.emittedSequence?.toString() ?? null,
      last_batch_age_ms: ageMs(listener.lastMessageAtMs),
      replay: listener.replay,
    },
    counters: counters(relay),
    filtered_by_reason: filteredByReason(relay),
    latency_ms: { p50: inMs(latency.quantile(0.5)), p99: inMs(latency.quantile(0.99)) },
    queues: {
      replay: listener.heldBatches,
      held: relay.hold.heldMessages,
      outbox: relay.plane.outboxMessages,
    },
    blocks: { ...metrics.liveBlocks },
    last_event_id: relay.lastEventId?.toString() ?? null,
    block_size: { configured: config.blockSize, seen: [...metrics.blockSizesSeen] },
  };
}

/**
 * All ranks' planes as one: they are of one kind, and connected where every one is. Without a rank it is
 * the plane of the stores' objects.
 */
export function planeStatus(relays: readonly Relay[], objects: Plane | null): PlaneStatus {
  const { connected, outboxBytes, outboxMessages } = planeReading(relays, objects);
  const plane = relays[0]?.plane ?? objects;
  return {
    kind: plane?.kind ?? 'none',
    connected,
    endpoint: plane?.endpoint ?? null,
    outbox_bytes: outboxBytes,
    outbox_messages: outboxMessages,
  };
}

export function planeReading(relays: readonly Relay[], objects: Plane | null): PlaneReading {
  const planes: readonly { readonly plane: Plane; readonly hold: OutputHold | null }[] =
    relays.length > 0 || objects === null ? relays : [{ plane: objects, hold: null }];
  const sum = (read: (plane: Plane, hold: OutputHold | null) => number): number =>
    planes.reduce((total, { plane, hold }) => total + read(plane, hold), 0);
  return {
    connected: planes.every(({ plane }) => plane.isConnected),
    outboxBytes: sum((plane, hold) => plane.outboxBytes + (hold?.heldBytes ?? 0)),
    outboxMessages: sum((plane, hold) => plane.outboxMessages + (hold?.heldMessages ?? 0)),
    disconnects: sum((plane) => plane.disconnects),
    reconnects: sum((plane) => plane.reconnects),
    refusals: sum((plane) => plane.refusals),
  };
}

export function recoveryStatus(recovery: RecoveryService): RecoveryStatus {
  const { requestPlane, endpoint, counts } = recovery;
  return {
    request_plane: requestPlane,
    endpoint,
    clients: counts.clients,
    answers_in_flight: counts.answersInFlight,
  };
}

/** By what reached this rank: its socket may carry others', and what cannot be read is no event. */
function rankState({ metrics }: Relay, listener: EngineListener): RankState {
  if (!listener.isConnected) return 'connecting';
  if (totalOf(metrics.received) === 0) return 'idle';
  return hasOnlyFilteredEvents(metrics) ? 'filtered_only' : 'flowing';
}

function counters({ metrics }: Relay): RankCounters {
  return {
    received: totalOf(metrics.received),
    accepted: totalOf(metrics.accepted),
    filtered: EVENT_TYPES.reduce((sum, type) => sum + totalOf(metrics.filtered[type]), 0),
    coalesced: metrics.coalescedEvents,
    published_events: totalOf(metrics.publishedEvents),
    published_blocks: totalOf(metrics.publishedBlocks),
    heartbeats: metrics.heartbeats,
    suppressed_removes: metrics.suppressedRemoves,
    missing_batches: metrics.missingBatches,
    lost_batches: metrics.lostBatches,
    duplicate_batches: metrics.duplicateBatches,
    engine_restarts: metrics.engineRestarts,
    malformed: totalOf(metrics.malformed),
  };
}

function filteredByReason({ metrics }: Relay): Partial<Record<FilterReason, number>> {
  const counts: Partial<Record<FilterReason, number>> = {};
  for (const reason of FILTER_REASONS) {
    const count = EVENT_TYPES.reduce((sum, type) => sum + metrics.filtered[type][reason], 0);
    if (count > 0) counts[reason] = count;
  }
  return counts;
}

function ageMs(arrivedAtMs: number | null): number | null {
  return arrivedAtMs === null ? null : Math.round(performance.now() - arrivedAtMs);
}

function inMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}
