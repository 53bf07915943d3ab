/**
 * Gives each event its publish id and encodes it once, for the plane and whoever else needs the bytes.
 *
 * Ids     from 1, +1 an event, over all ranks and tiers of a publisher.
 * Owns    one encode buffer; the bytes of a batch live until the next batch comes, or the end.
 * Source  ai-dynamo/dynamo 1.6.1: ids are given after dedup.
 */
import { finalize, map, type OperatorFunction } from 'rxjs';
import { EncodeBuffer } from '../kernel/encode-buffer.ts';
import type { PlacementBatch } from '../protocol/placement-event.ts';
import { type RouterBatch, RouterEventEncoder } from '../protocol/router-event.ts';

export interface NumberEventsOptions {
  readonly workerId: bigint;
  /** Id of the first event; above 1 only where a test wants large ids. */
  readonly firstEventId?: number;
}

export function numberEvents(
  options: NumberEventsOptions,
): OperatorFunction<PlacementBatch, RouterBatch> {
  return (source) => {
    const encoder = new RouterEventEncoder(options.workerId);
    const encoded = new EncodeBuffer();
    let nextEventId = options.firstEventId ?? 1;
    return source.pipe(
      map((batch) => {
        encoded.reset();
        const events = batch.map((placement) => {
          const start = encoded.length;
          const eventId = nextEventId++;
          encoder.encode(encoded, placement, eventId);
          return { eventId, placement, start, end: encoded.length };
        });
        return { events, encoded };
      }),
      finalize(() => encoded.free()),
    );
  };
}
