/**
 * MooncakeReader: one payload to a typed message.
 *
 * In       MessagePack [timestamp_ms, events, dp_rank].
 * Faults   an event that cannot be used costs itself; damaged bytes, or more events than MAX_EVENTS, cost
 *          the message.
 * Memory   keys are views of the payload.
 * Throws   never.
 */
import {
  BAD_FIELD,
  DAMAGED,
  DecodeFault,
  MISSING_FIELD,
  OVERSIZE,
  UNKNOWN_TAG,
} from '../decode-fault.ts';
import { BAD_KEY, readMooncakeEvent } from './event-reader.ts';
import { FieldReader } from './field-reader.ts';
import type {
  MooncakeEvent,
  MooncakeEventFault,
  MooncakeMessage,
  MooncakeMessageFault,
} from './message.ts';

/** Sixteen times what the publisher puts into one message. */
export const MAX_EVENTS = 1024;

const MESSAGE_ELEMENTS = 3;

export class MooncakeReader {
  readonly #reader = new FieldReader();

  read(payload: Uint8Array): MooncakeMessage | MooncakeMessageFault {
    const reader = this.#reader;
    try {
      reader.open(payload);
      if (reader.openArray() < MESSAGE_ELEMENTS) return 'batch_shape';
      const timestampMs = reader.readI64();
      const events: MooncakeEvent[] = [];
      const faults: MooncakeEventFault[] = [];
      this.#readEvents(events, faults);
      const dpRank = reader.readU32();
      return { timestampMs, dpRank, events, faults };
    } catch (error) {
      if (error === DAMAGED) return 'msgpack';
      if (error === OVERSIZE) return 'oversize';
      if (error instanceof DecodeFault) return 'batch_shape';
      throw error;
    } finally {
      reader.close();
    }
  }

  #readEvents(events: MooncakeEvent[], faults: MooncakeEventFault[]): void {
    const reader = this.#reader;
    const count = reader.openArray();
    if (count > MAX_EVENTS) throw OVERSIZE;
    for (let index = 0; index < count; index++) {
      const { position, depth } = reader;
      try {
        events.push(readMooncakeEvent(reader));
      } catch (error) {
        const fault = eventFault(error);
        reader.position = position;
        reader.depth = depth;
        reader.skip();
        faults.push(fault);
      }
    }
    reader.closeContainer();
  }
}

/** Rethrows what costs the whole message. */
function eventFault(error: unknown): MooncakeEventFault {
  if (error === UNKNOWN_TAG) return 'unknown_type';
  if (error === MISSING_FIELD) return 'missing_field';
  if (error === BAD_FIELD) return 'bad_field';
  if (error === BAD_KEY) return 'bad_key';
  throw error;
}
