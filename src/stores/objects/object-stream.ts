/**
 * ObjectStream: changes of the stores' objects as numbered events, in messages and in a log.
 *
 * Ids      count from 1 without a hole, under a publisher id that is new at every start.
 * Messages leave at the end of the turn in which their events came, sooner where they are full.
 * Recovery ranges come from the log; who is further behind takes a snapshot and goes on from its id.
 */
import type { ObjectStreamMetrics } from '../../metrics/object-metrics.ts';
import type { PlaneMessage } from '../../protocol/envelope.ts';
import {
  encodeObjectEvent,
  type ObjectEvent,
  ObjectMessageEncoder,
} from '../../protocol/object-event.ts';
import type { ObjectAttributes } from './attribute-sets.ts';
import { EventLog, type EventLogBounds } from './event-log.ts';
import type { ObjectChange } from './object-change.ts';

/** What a message holds at most; one event alone may be larger. */
const MAX_MESSAGE_EVENTS = 512;
const MAX_MESSAGE_BYTES = 128 << 10;
/** Most that stands around the events of a message. */
const MAX_HEAD_BYTES = 128;

export interface ObjectStreamOptions {
  readonly publisherId: number;
  readonly log: EventLogBounds;
  /** Takes each message at once; neither throws nor waits. */
  readonly send: (message: PlaneMessage) => void;
  /** Most bytes of a message, now. */
  readonly maxMessageBytes: () => number;
  /** Calls back at the end of this turn. */
  readonly defer: (callback: () => void) => void;
}

/** What a range of events is answered with. */
export type ObjectRange =
  | { readonly kind: 'snapshot' | 'too_new' | 'invalid_range'; readonly lastEventId: number }
  | {
      readonly kind: 'events';
      readonly lastEventId: number;
      readonly events: readonly Buffer[];
      /** Where a bound cut them off; null where all that were asked for are here. */
      readonly nextEventId: number | null;
    };

export class ObjectStream {
  readonly #options: ObjectStreamOptions;
  readonly #metrics: ObjectStreamMetrics;
  readonly #encoder: ObjectMessageEncoder;
  readonly #log: EventLog;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #isDeferred = false;

  constructor(options: ObjectStreamOptions, metrics: ObjectStreamMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#encoder = new ObjectMessageEncoder(options.publisherId);
    this.#log = new EventLog(options.log);
  }

  get publisherId(): number {
    return this.#options.publisherId;
  }

  /** 0 before the first. */
  get lastEventId(): number {
    return this.#log.lastId;
  }

  get logEvents(): number {
    return this.#log.length;
  }

  push(change: ObjectChange): void {
    const event = encodeObjectEvent(eventOf(change, this.#log.lastId + 1));
    this.#log.push(event);
    const { maxMessageBytes, defer } = this.#options;
    const room = Math.min(MAX_MESSAGE_BYTES, maxMessageBytes() - MAX_HEAD_BYTES);
    if (this.#pendingBytes + event.length > room) this.flush();
    this.#pending.push(event);
    this.#pendingBytes += event.length;
    if (this.#pending.length === MAX_MESSAGE_EVENTS) this.flush();
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    defer(() => {
      this.#isDeferred = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const events = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    const message = this.#encoder.encode(events, Date.now());
    if (message.envelope.length > this.#options.maxMessageBytes()) {
      this.#metrics.publishFailures.payload_too_large++;
      return;
    }
    this.#metrics.publishedMessages++;
    this.#metrics.publishedEvents += events.length;
    this.#options.send(message);
  }

  /** Events from `start` to `end`, the newest where there is none, within the bounds. */
  range(start: number | null, end: number | null, bounds: EventLogBounds): ObjectRange {
    const { firstId, lastId: lastEventId } = this.#log;
    if (start !== null && end !== null && end < start)
      return { kind: 'invalid_range', lastEventId };
    if (start === null || start < firstId) return { kind: 'snapshot', lastEventId };
    if (start > lastEventId) return { kind: 'too_new', lastEventId };
    const wanted = Math.min(end ?? lastEventId, lastEventId) - start + 1;
    const { maxEvents, maxBytes } = bounds;
    const events = this.#log.slice(start, Math.min(wanted, maxEvents), maxBytes);
    const nextEventId = events.length < wanted ? start + events.length : null;
    return { kind: 'events', lastEventId, events, nextEventId };
  }
}

function eventOf(change: ObjectChange, eventId: number): ObjectEvent {
  const { type, cause } = change;
  const { source, backendId, tenantId } = change.scope;
  const head = {
    event_id: eventId,
    source,
    backend_id: backendId,
    tenant_id: tenantId,
    type,
    cause,
  };
  if (change.type === 'cleared') return { ...head, object_count: change.objectCount };
  const { medium, media, key } = change;
  const object_key = Buffer.from(key.buffer, key.byteOffset, key.length).toString('utf8');
  const attributes = change.type === 'stored' ? wireAttributes(change.attributes) : {};
  return { ...head, object_key, medium, media, ...attributes };
}

/** By their wire names; what is not known is left out. */
export function wireAttributes(attributes: ObjectAttributes): Partial<ObjectEvent> {
  const { groupId, modelName, blockSize, loraName, additionalSalt, sessionId } = attributes;
  return {
    ...(groupId !== null && { group_id: groupId }),
    ...(modelName !== null && { model_name: modelName }),
    ...(blockSize !== null && { block_size: blockSize }),
    ...(loraName !== null && { lora_name: loraName }),
    ...(additionalSalt !== null && { additional_salt: additionalSalt }),
    ...(sessionId !== null && { session_id: sessionId }),
  };
}
