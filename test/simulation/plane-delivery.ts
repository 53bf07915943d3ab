/**
 * PlaneDelivery: one message as the plane's server passes it on, read once for all who get it.
 *
 * IdWatch   ids and message numbers of each publisher only rise, but where a message comes once more, which
 *           then has the same bytes.
 */
import { unpack } from 'msgpackr';
import { eventsOf, type PublishedEvent } from '../support/published-events.ts';

export interface PlaneDelivery {
  readonly publisherId: number;
  readonly sequence: number;
  readonly events: readonly PublishedEvent[];
}

interface Envelope {
  readonly publisher_id: number | bigint;
  readonly sequence: number | bigint;
  readonly payload: Uint8Array;
}

export function readDelivery(bytes: Uint8Array): PlaneDelivery {
  const { publisher_id, sequence, payload } = unpack(bytes) as Envelope;
  const events = eventsOf(payload);
  return { publisherId: Number(publisher_id), sequence: Number(sequence), events };
}

interface Known {
  lastSequence: number;
  lastEventId: number;
  readonly firstEventIds: Map<number, number>;
}

export class IdWatch {
  readonly #publishers = new Map<number, Known>();
  readonly complaints: string[] = [];

  take({ publisherId, sequence, events }: PlaneDelivery): void {
    const known = this.#publishers.get(publisherId) ?? newPublisher();
    this.#publishers.set(publisherId, known);
    const firstEventId = Number(events[0]?.id ?? 0);
    const before = known.firstEventIds.get(sequence);
    if (before !== undefined) {
      if (before !== firstEventId) this.complaints.push(`message ${sequence} has two contents`);
      return;
    }
    known.firstEventIds.set(sequence, firstEventId);
    if (sequence <= known.lastSequence) this.complaints.push(`message ${sequence} comes late`);
    known.lastSequence = sequence;
    for (const { id, rank } of events) {
      if (Number(id) <= known.lastEventId) {
        this.complaints.push(`rank ${rank}: event ${id} behind event ${known.lastEventId}`);
      }
      known.lastEventId = Number(id);
    }
  }
}

function newPublisher(): Known {
  return { lastSequence: -1, lastEventId: 0, firstEventIds: new Map() };
}
