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
import type { Publisher } from '../protocol/publisher.ts';
import type { RouterBatch } from '../protocol/router-event.ts';

export interface NumberEventsOptions {
  readonly publisher: Publisher;
}

export function numberEvents({
  publisher,
}: NumberEventsOptions): OperatorFunction<PlacementBatch, RouterBatch> {
  return (source) => {
    const encoded = new EncodeBuffer();
    return source.pipe(
      map((events) => {
        encoded.reset();
        const encoder = publisher.events;
        const firstEventId = publisher.nextEventId;
        let nextEventId = firstEventId;
        const ends: number[] = [];
        for (const event of events) {
          encoder.encode(encoded, event, nextEventId++);
          ends.push(encoded.length);
        }
        publisher.nextEventId = nextEventId;
        return { events, firstEventId, encoded, ends };
      }),
      finalize(() => encoded.free()),
    );
  };
}
