/**
 * Object events: what stores hold, as the topic `kv-objects` carries it. docs/objects.md has the schema.
 *
 * envelope  as for router events: publisher_id, sequence, published_at, topic, payload
 * payload   map {version: 1, events: [event, …]}; ids of a publisher's events count from 1 without a hole
 * event     map {event_id, source, backend_id, tenant_id, type, cause, …}; what is not known is left out
 *
 * An event gives the whole set of media an object has from there on, so applying one twice, or a range
 * of them over a snapshot that was taken meanwhile, ends in the same state.
 */
import { Packr } from 'msgpackr';
import type { PlaneMessage } from './envelope.ts';

export const OBJECTS_TOPIC = 'kv-objects';
const OBJECT_SCHEMA_VERSION = 1;

/** Where consumers ask over NATS for what they missed, or for all there is. */
export function objectRequestSubject(publisherId: number): string {
  return `kvrelay.objects.${publisherId}`;
}

/** One event, by its wire names. */
export interface ObjectEvent {
  readonly event_id: number;
  readonly source: string;
  readonly backend_id: string;
  readonly tenant_id: string;
  readonly type: 'stored' | 'removed' | 'cleared';
  readonly cause: 'event' | 'reconciled' | 'invalidated';
  /** On `stored` and `removed`: the key, the medium that came or went, all media left. */
  readonly object_key?: string;
  readonly medium?: string;
  readonly media?: readonly string[];
  /** On `cleared`: how many objects that were. */
  readonly object_count?: number;
  /** On `stored`, where known. */
  readonly group_id?: string;
  readonly model_name?: string;
  readonly block_size?: number;
  readonly lora_name?: string;
  readonly additional_salt?: string;
  readonly session_id?: string;
}

const packr = new Packr({ useRecords: false, variableMapSize: true });

export function encodeObjectEvent(event: ObjectEvent): Buffer {
  return packr.pack({ ...event, event_id: integer(event.event_id) });
}

export function decodeObjectEvent(bytes: Uint8Array): ObjectEvent {
  const event = packr.unpack(bytes) as ObjectEvent & { event_id: number | bigint };
  return { ...event, event_id: Number(event.event_id) };
}

/** Writes the messages of one publisher and counts them. */
export class ObjectMessageEncoder {
  readonly #publisherId: number;
  #nextSequence = 0;

  /** 1 … 2^53 − 1. */
  constructor(publisherId: number) {
    this.#publisherId = publisherId;
  }

  /** `events`: encoded, in order, one at least. */
  encode(events: readonly Buffer[], publishedAtMs: number): PlaneMessage {
    const sequence = this.#nextSequence++;
    const envelope = packr.pack({
      publisher_id: integer(this.#publisherId),
      sequence: integer(sequence),
      published_at: integer(publishedAtMs),
      topic: OBJECTS_TOPIC,
      payload: Buffer.concat([PAYLOAD_HEAD, arrayHeader(events.length), ...events]),
    });
    return { sequence, eventCount: events.length, envelope };
  }
}

/** Up to the list: {version: 1, events: … */
const PAYLOAD_HEAD = Buffer.concat([
  Buffer.from([0x82]),
  packr.pack('version'),
  packr.pack(OBJECT_SCHEMA_VERSION),
  packr.pack('events'),
]);

function arrayHeader(length: number): Buffer {
  const header = Buffer.from([0xdd, 0, 0, 0, 0]);
  header.writeUInt32BE(length, 1);
  return header;
}

/** msgpackr writes a number of 2^32 or more as a float. */
function integer(value: number): number | bigint {
  return value < 2 ** 32 ? value : BigInt(value);
}
