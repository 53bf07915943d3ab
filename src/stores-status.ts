/** The stores as `/api/status`, HTTP and metrics show them. */

import { chunkPlacementStatus } from './chunks-status.ts';
import type { ObjectStreamReading, StoreReading } from './metrics/metrics-source.ts';
import type { SourceMetrics } from './metrics/source-metrics.ts';
import type { ObjectListing } from './status/object-source.ts';
import type {
  ChunkPlacementStatus,
  ObjectsStatus,
  PlacementStatus,
  SourceCounters,
  SourceStatus,
} from './status/status-source.ts';
import { LMCACHE_STREAM } from './stores/lmcache-stream/stream-view.ts';
import { FIRST_PAGE, objectPage } from './stores/objects/object-pages.ts';
import { rangeJson } from './stores/objects/object-requests.ts';
import type { StoreSource } from './stores/store-source.ts';
import type { WorkerStores } from './worker-stores.ts';

export function sourceStatuses(stores: WorkerStores): SourceStatus[] {
  return stores.sources.map((source) => sourceStatus(source, stores));
}

function sourceStatus(source: StoreSource, stores: WorkerStores): SourceStatus {
  const { state } = stores;
  const reading = source.reading();
  const { reconciliation } = reading;
  const room =
    state.untrackedObjects > 0
      ? [
          {
            message: `${state.untrackedObjects} objects found no room and are not shown`,
            remedy: 'Raise --mooncake-max-objects above the number of objects the store can hold',
          },
        ]
      : [];
  return {
    source: source.name,
    endpoint: reading.endpoint,
    connected: source.isConnected,
    suspect: source.isSuspect,
    degraded: [...reading.notices, ...room].map((notice) => ({ code: 'store_suspect', ...notice })),
    objects: state.countOf((scope) => source.owns(scope)),
    last_seq: reading.lastSequence?.toString() ?? null,
    last_message_age_ms: reading.lastMessageAgeMs,
    held_messages: reading.heldMessages,
    counters: countersOf(source.metrics),
    reconciliation: reconciliation && {
      endpoint: reconciliation.endpoint,
      state: reconciliation.state,
      last_ms: reconciliation.lastMs,
      age_ms: reconciliation.ageMs,
    },
    placement: placementStatus(source, stores),
  };
}

function placementStatus(
  source: StoreSource,
  stores: WorkerStores,
): PlacementStatus | ChunkPlacementStatus | null {
  if (source.name === LMCACHE_STREAM) return chunkPlacementStatus(stores.chunks, 'l1');
  if (source === stores.coordinator && stores.coordinator.places) {
    return chunkPlacementStatus(stores.chunks, 'l2') ?? chunkPlacementStatus(stores.chunks, 'l1');
  }
  const { placements, storageTier } = stores;
  if (placements === null || placements.source !== source.name) return null;
  return {
    pattern: placements.patternName,
    storage_tier: storageTier,
    matched_keys: placements.matchedKeys,
    unmatched_keys: placements.unmatchedKeys,
    held_blocks: placements.heldHashes,
    placed_blocks: placements.placedBlocks,
  };
}

function countersOf(metrics: SourceMetrics): SourceCounters {
  const { stored, removed, cleared } = metrics.events;
  const all = [stored, removed, cleared];
  const sumOf = (counts: Readonly<Record<string, number>>): number =>
    Object.values(counts).reduce((sum, count) => sum + count, 0);
  return {
    connects: metrics.connects,
    messages: metrics.messages,
    received: all.reduce((sum, { received }) => sum + received, 0),
    applied: all.reduce((sum, { applied }) => sum + applied, 0),
    repeated: all.reduce((sum, { repeated }) => sum + repeated, 0),
    lost_messages: metrics.lostMessages,
    restarts: metrics.restarts,
    malformed: sumOf(metrics.malformed),
    dropped_events: sumOf(metrics.droppedEvents),
    invalidated_objects: metrics.invalidatedObjects,
  };
}

export function objectsStatus({ state, stream, plane }: WorkerStores): ObjectsStatus {
  return {
    publisher_id: stream.publisherId.toString(),
    plane_endpoint: plane.endpoint,
    last_event_id: stream.lastEventId === 0 ? null : stream.lastEventId.toString(),
    objects: state.objectCount,
    bytes: state.bytes,
    buffered_events: stream.logEvents,
  };
}

export function storeReadings({ sources, state }: WorkerStores): StoreReading[] {
  return sources.map((source) => ({
    name: source.name,
    metrics: source.metrics,
    connected: source.isConnected,
    suspect: source.isSuspect,
    objects: state.countOf((scope) => source.owns(scope)),
  }));
}

export function objectStreamReading({
  state,
  stream,
  metrics,
  placements,
}: WorkerStores): ObjectStreamReading {
  return {
    metrics,
    objects: state.objectCount,
    bytes: state.bytes,
    untrackedObjects: state.untrackedObjects,
    unkeptAttributes: state.unkeptAttributes,
    bufferedEvents: stream.logEvents,
    matchedKeys: placements?.matchedKeys ?? 0,
    unmatchedKeys: placements?.unmatchedKeys ?? 0,
    placedBlocks: placements?.placedBlocks ?? 0,
    unkeptBlocks: placements?.ranks.reduce((sum, { known }) => sum + known.unkept, 0) ?? 0,
  };
}

/** What HTTP lists and answers ranges from. */
export function objectListing({ state, stream }: WorkerStores): ObjectListing {
  const textOrNull = (text: string | null): Buffer | null =>
    text === null ? null : Buffer.from(text);
  return {
    publisherId: stream.publisherId.toString(),
    lastEventId: stream.lastEventId.toString(),
    pages: function* (filter) {
      const asked = { ...filter, prefix: textOrNull(filter.prefix) };
      for (let from: typeof FIRST_PAGE | null = FIRST_PAGE; from !== null; ) {
        const page = objectPage(state, from, asked);
        yield page.rows;
        from = page.next;
      }
    },
    range: (start, end, bounds) => rangeJson(stream.range(start, end, bounds), stream.publisherId),
  };
}
