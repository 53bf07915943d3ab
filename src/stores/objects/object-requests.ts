/**
 * Requests about the object stream, JSON in and out, as consumers put them over NATS.
 *
 * In       {"start": "5", "end"?: "9"}  a range of events
 *          {"snapshot": true, "cursor"?: "3:1200"}  a page of all objects, from where the last one ended
 * Out      {"kind": "events"|"snapshot"|"too_new"|"invalid_range"|"objects"|"error", …}
 * Bounds   bytes of a request; of an answer by its pages. Never throws.
 */
import { z } from 'zod';
import { decodeObjectEvent, type ObjectEvent } from '../../protocol/object-event.ts';
import { FIRST_PAGE, type ObjectCursor, objectPage } from './object-pages.ts';
import type { ObjectState } from './object-state.ts';
import type { ObjectRange, ObjectStream } from './object-stream.ts';

const MAX_REQUEST_BYTES = 4096;
/** As JSON they are up to three times as large. */
const RANGE_BOUNDS = { maxEvents: 500, maxBytes: 128 << 10 };

const eventId = z.string().regex(/^\d{1,16}$/);

const requestShape = z.union([
  z.object({
    snapshot: z.literal(true),
    cursor: z
      .string()
      .regex(/^\d{1,15}:\d{1,10}$/)
      .nullish(),
  }),
  z.object({ start: eventId, end: eventId.nullish() }),
]);

/** u64 as text, as everywhere in JSON here. */
function eventJson(event: ObjectEvent): object {
  return { ...event, event_id: String(event.event_id) };
}

export function rangeJson(range: ObjectRange, publisherId: number): object {
  const head = {
    kind: range.kind,
    publisher_id: String(publisherId),
    last_event_id: String(range.lastEventId),
  };
  if (range.kind !== 'events') return head;
  const events = range.events.map((event) => eventJson(decodeObjectEvent(event)));
  const { nextEventId } = range;
  return { ...head, events, next_event_id: nextEventId === null ? null : String(nextEventId) };
}

export function answerObjectRequest(
  request: Uint8Array,
  state: ObjectState,
  stream: ObjectStream,
): Uint8Array {
  const answer = request.length > MAX_REQUEST_BYTES ? null : parsed(request);
  const checked = requestShape.safeParse(answer);
  if (!checked.success) {
    const message = 'Give {"start": ID, "end"?: ID} or {"snapshot": true, "cursor"?: CURSOR}';
    return asBytes({ kind: 'error', message });
  }
  if ('snapshot' in checked.data) return asBytes(snapshotJson(checked.data.cursor, state, stream));
  const { start, end } = checked.data;
  const last = end === undefined || end === null ? null : Number(end);
  return asBytes(rangeJson(stream.range(Number(start), last, RANGE_BOUNDS), stream.publisherId));
}

function snapshotJson(
  cursor: string | null | undefined,
  state: ObjectState,
  stream: ObjectStream,
): object {
  const page = objectPage(state, cursorOf(cursor), EVERYTHING);
  const { next } = page;
  return {
    kind: 'objects',
    publisher_id: String(stream.publisherId),
    last_event_id: String(stream.lastEventId),
    objects: page.rows,
    next_cursor: next === null ? null : `${next.scopeId}:${next.entry}`,
  };
}

const EVERYTHING = { source: null, backendId: null, tenantId: null, prefix: null };

function cursorOf(text: string | null | undefined): ObjectCursor {
  if (text === null || text === undefined) return FIRST_PAGE;
  const [scopeId, entry] = text.split(':').map(Number);
  return { scopeId: scopeId ?? 0, entry: entry ?? 0 };
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return null;
  }
}

function asBytes(answer: object): Uint8Array {
  return Buffer.from(JSON.stringify(answer));
}
