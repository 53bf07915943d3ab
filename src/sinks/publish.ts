/**
 * Cuts a batch into messages and hands them to the plane.
 *
 * Message  at most 128 events and 8192 blocks; an event with more blocks travels alone.
 * Failure  a message over the plane's limit is counted and skipped: its sequence number and its ids are
 *          spent, the messages behind it still go.
 * Source   ai-dynamo/dynamo 1.6.1, sinks.rs.
 */
import { map, type OperatorFunction } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { type EnvelopeEncoder, messageEnds, type PlaneMessage } from '../protocol/envelope.ts';
import type { RouterBatch } from '../protocol/router-event.ts';
import type { RouterEventSink } from './sink.ts';

export interface PublishOptions {
  readonly envelopes: EnvelopeEncoder;
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
  const { envelopes, maxMessageBytes, onTooLarge } = options;
  const send = (message: PlaneMessage): void => {
    const { length } = message.envelope;
    if (length > sink.maxMessageBytes) {
      metrics.publishFailures.payload_too_large++;
      onTooLarge?.(length, sink.maxMessageBytes);
      return;
    }
    sink.publish(message);
    countPublished(message, metrics);
  };
  return map((batch) => {
    let first = 0;
    for (const end of messageEnds(batch.events, maxMessageBytes?.())) {
      send(envelopes.encode(batch, first, end, Date.now()));
      first = end;
    }
  });
}

function countPublished({ envelope, events }: PlaneMessage, metrics: RelayMetrics): void {
  metrics.publishedMessages++;
  metrics.publishedBytes += envelope.length;
  for (const { placement } of events) {
    metrics.publishedEvents[placement.type]++;
    metrics.publishedBlocks[placement.type] += placement.blockCount;
  }
  const arrivedAtMs = events[0]?.placement.arrivedAtMs ?? Number.NaN;
  metrics.relayLatencySeconds.observe((performance.now() - arrivedAtMs) / 1000);
}
