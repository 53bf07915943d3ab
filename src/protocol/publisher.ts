/**
 * Publisher: under whose name a relay's events leave, and how far it has counted.
 *
 * Incarnation   a worker id and a publisher id, event ids from 1 and message numbers from 0. Routers take
 *               a new publisher id for a new source, so nothing of the one before it has to fit.
 * Closed        until a worker is known: events are still numbered and indexed, but none leaves; what was
 *               counted meanwhile is void once it opens.
 * Read          once a batch by the stages, so that opening costs nothing on their way.
 */
import { randomBytes } from 'node:crypto';
import { EnvelopeEncoder } from './envelope.ts';
import { type MessageRoom, NO_ROOM } from './message-slab.ts';
import { RouterEventEncoder } from './router-event.ts';

export interface PublisherOptions {
  /** u64; null: closed until `open()`. */
  readonly workerId: bigint | null;
  /** 1 … 2^53 − 1; drawn at random if absent. */
  readonly publisherId?: number;
  /** What the plane of its messages wants around them; none if absent. */
  readonly room?: MessageRoom;
  /** Above 1 and 0 only where a test wants large numbers. */
  readonly firstEventId?: number;
  readonly firstSequence?: number;
}

export class Publisher {
  #workerId: bigint | null;
  #publisherId: number;
  #encodedWorkerId: bigint;
  readonly #room: MessageRoom;
  events: RouterEventEncoder;
  envelopes: EnvelopeEncoder;
  nextEventId: number;

  constructor(options: PublisherOptions) {
    const { workerId, publisherId = randomPublisherId(), room = NO_ROOM } = options;
    this.#workerId = workerId;
    this.#publisherId = publisherId;
    this.#encodedWorkerId = workerId ?? 0n;
    this.#room = room;
    this.events = new RouterEventEncoder(this.#encodedWorkerId);
    this.envelopes = new EnvelopeEncoder(publisherId, options.firstSequence, room);
    this.nextEventId = options.firstEventId ?? 1;
  }

  /** Null while closed. */
  get workerId(): bigint | null {
    return this.#workerId;
  }

  get publisherId(): number {
    return this.#publisherId;
  }

  get isOpen(): boolean {
    return this.#workerId !== null;
  }

  /** Id of the event numbered last; null before the first of the incarnation. */
  get lastEventId(): number | null {
    return this.isOpen && this.nextEventId > 1 ? this.nextEventId - 1 : null;
  }

  /** Begins a new incarnation. */
  open(workerId: bigint): void {
    this.#workerId = workerId;
    this.#publisherId = randomPublisherId();
    // Its templates live in the kernel's memory for good, so none is made without need.
    if (this.#encodedWorkerId !== workerId) this.events = new RouterEventEncoder(workerId);
    this.#encodedWorkerId = workerId;
    this.envelopes = new EnvelopeEncoder(this.#publisherId, 0, this.#room);
    this.nextEventId = 1;
  }

  close(): void {
    this.#workerId = null;
  }
}

/** Random, 1 … 2^53 − 1: routers read it from JSON. */
export function randomPublisherId(): number {
  return Number(BigInt.asUintN(53, randomBytes(8).readBigUInt64BE())) || 1;
}
