/**
 * Cuts a batch into messages and hands them to the plane.
 *
 * Message  at most 128 events and 8192 blocks; an event with more blocks travels alone.
 * Closed   while the publisher has no worker, nothing is sent and nothing counted.
 * Failure  a message over the plane's limit is counted and skipped: its sequence number and its ids are
 *          spent, the messages behind it still go.
 * Source   ai-dynamo/dynamo 1.6.1, sinks.rs.
 */
import { map, type OperatorFunction } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { messageEnds, type PlaneMessage } from '../protocol/envelope.ts';
import type { PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';
import type { Publisher } from '../protocol/publisher.ts';
import type { RouterBatch } from '../protocol/router-event.ts';
import type { RouterEventSink } from './sink.ts';

export interface PublishOptions {
  readonly publisher: Publisher;
  /** Bytes that messages are cut to; without it, only events and blocks are counted. */
  readonly maxMessageBytes?: () => number;
  /** Told about a message that no plane will take; the owner bounds what it says of it. */
  readonly onTooLarge?: (messageBytes: number, maxMessageBytes: number) => void;
}

export function publish(
  sink: RouterEventSink,
  metrics: RelayMetrics,
  options: PublishOptions,
): OperatorFunction<RouterBatch, void> {
  const { publisher, maxMessageBytes, onTooLarge } = options;
  /** True where the plane took it. */
  const send = (message: PlaneMessage): boolean => {
    const { length } = message.envelope;
    if (length > sink.maxMessageBytes) {
      metrics.publishFailures.payload_too_large++;
      onTooLarge?.(length, sink.maxMessageBytes);
      return false;
    }
    sink.publish(message);
    metrics.publishedMessages++;
    metrics.publishedBytes += length;
    return true;
  };
  return map((batch) => {
    if (!publisher.isOpen) return;
    const { envelopes } = publisher;
    let first = 0;
    for (const end of messageEnds(batch, maxMessageBytes?.())) {
      if (send(envelopes.encode(batch, first, end, Date.now()))) {
        countPublished(batch.events, first, end, metrics);
      }
      first = end;
    }
  });
}

function countPublished(
  events: PlacementBatch,
  first: number,
  end: number,
  metrics: RelayMetrics,
): void {
  const { arrivedAtMs, isHeartbeat } = events[first] as PlacementEvent;
  if (isHeartbeat) {
    // Alone in its message, and no engine event: neither a change nor a latency.
    metrics.heartbeats++;
    return;
  }
  // Events of one kind come in runs, which are counted as a whole.
  for (let index = first; index < end; ) {
    const { type } = events[index] as PlacementEvent;
    const start = index;
    let blocks = 0;
    for (; index < end && (events[index] as PlacementEvent).type === type; index++) {
      blocks += (events[index] as PlacementEvent).blockCount;
    }
    metrics.publishedEvents[type] += index - start;
    metrics.publishedBlocks[type] += blocks;
  }
  metrics.relayLatencySeconds.observe((performance.now() - arrivedAtMs) / 1000);
}
