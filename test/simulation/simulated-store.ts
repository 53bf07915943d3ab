/**
 * A Mooncake master for simulations, plain: what it holds is a map of sets, what it tells goes through a
 * network that may be slow and may lose, and its answers are made somewhere between question and arrival.
 */
import { KeyList } from '../../src/stores/mooncake/key-list.ts';
import {
  type Master,
  MasterError,
  type PublisherStatus,
} from '../../src/stores/mooncake/master.ts';
import { type EventFields, mooncakeEvent, mooncakePayload } from '../support/mooncake-messages.ts';
import type { Random } from './random.ts';
import type { SimulatedStoreClock } from './store-clock.ts';

export interface StoreFaults {
  /** Chances, a message or an answer each. */
  loss: number;
  /** The publisher gives an event up and leaves its number out. */
  drop: number;
  failure: number;
  /** Largest delay of a message, and of each way of a question. */
  eventMs: number;
  askMs: number;
}

const NO_MEDIUM = 'no medium';

type Deliver = (sequence: bigint, payload: Uint8Array) => void;

export class SimulatedStore implements Master {
  /** Media by tenant and key. */
  readonly held: Map<string, Map<string, Set<string>>> = new Map();
  readonly faults: StoreFaults;
  readonly #clock: SimulatedStoreClock;
  readonly #random: Random;
  readonly #deliver: Deliver;
  #eventId = 0;
  #sequence = 0;
  #batches = 0;
  #dropped = 0;
  #pending: EventFields[] = [];
  /** Messages arrive in the order in which they were sent. */
  #lastArrivalMs = 0;
  lostMessages = 0;
  /** Whoever follows is connected: else what is sent is lost. */
  isLinked = true;
  /** A message of the present life has arrived, or will. */
  hasSpoken = false;
  /** The first message of a life that arrived was numbered as if it followed on the last of the one before. */
  isSeamless = false;
  #lastSent: { sequence: bigint; lastId: number; isWhole: boolean } | null = null;

  constructor(clock: SimulatedStoreClock, random: Random, faults: StoreFaults, deliver: Deliver) {
    this.#clock = clock;
    this.#random = random;
    this.faults = faults;
    this.#deliver = deliver;
  }

  /** Until all that was sent has arrived. */
  get onTheWayMs(): number {
    return Math.max(0, this.#lastArrivalMs - this.#clock.nowMs());
  }

  tenant(name: string): Map<string, Set<string>> {
    const known = this.held.get(name) ?? new Map<string, Set<string>>();
    this.held.set(name, known);
    return known;
  }

  put(tenant: string, key: string, medium: string): void {
    const media = this.tenant(tenant).get(key) ?? new Set();
    this.tenant(tenant).set(key, media.add(medium));
    this.tell('stored', tenant, key, medium);
  }

  /** Every medium of it, or one. */
  remove(tenant: string, key: string, only: string | null = null): void {
    const media = this.tenant(tenant).get(key) ?? new Set();
    for (const medium of media) {
      if (only !== null && medium !== only) continue;
      media.delete(medium);
      this.tell('removed', tenant, key, medium);
    }
    if (media.size === 0) this.tenant(tenant).delete(key);
  }

  /** Tells once more that it is not in memory, where it is not. */
  repeatRemoved(tenant: string, key: string): void {
    if (this.tenant(tenant).get(key)?.has('cpu') !== true) this.tell('removed', tenant, key, 'cpu');
  }

  /** Removed, and told so that nobody can read it. */
  removeGarbled(tenant: string, key: string): void {
    this.tenant(tenant).delete(key);
    this.tell('removed', tenant, key, NO_MEDIUM);
  }

  removeAll(tenant: string): void {
    const keys = [...this.tenant(tenant).keys()];
    for (const key of keys) this.remove(tenant, key);
    if (keys.length > 0) this.tell('cleared', tenant, '', '');
  }

  /** An eviction, or an object gone with its client. */
  vanish(tenant: string, key: string): void {
    this.tenant(tenant).delete(key);
  }

  restart(): void {
    this.flush();
    this.held.clear();
    this.#eventId = 0;
    this.#sequence = 0;
    this.#batches = 0;
    this.#dropped = 0;
    this.isLinked = false;
    this.hasSpoken = false;
  }

  tell(
    type: 'stored' | 'removed' | 'cleared',
    tenant_id: string,
    key: string,
    medium: string,
  ): void {
    const own = type === 'cleared' ? {} : { object_key: key, medium };
    if (this.#random.chance(this.faults.drop)) {
      this.flush();
      this.#dropped++;
      this.#sequence++;
      return;
    }
    this.#pending.push(mooncakeEvent(type, ++this.#eventId, { tenant_id, ...own }));
    if (this.#random.chance(0.4)) this.flush();
  }

  /** Sends what is pending as one message. */
  flush(): void {
    if (this.#pending.length === 0) return;
    const events = this.#pending;
    const payload = mooncakePayload(events);
    this.#pending = [];
    this.#batches++;
    const sequence = BigInt(++this.#sequence);
    if (!this.isLinked || this.#random.chance(this.faults.loss)) {
      this.lostMessages++;
      return;
    }
    this.#noteSeam(sequence, events);
    this.hasSpoken = true;
    const atMs = this.#clock.nowMs() + this.#random.next() * this.faults.eventMs;
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, atMs);
    const delayMs = this.#lastArrivalMs - this.#clock.nowMs();
    this.#clock.schedule(() => this.#deliver(sequence, payload), delayMs);
  }

  #noteSeam(sequence: bigint, events: readonly EventFields[]): void {
    const before = this.#lastSent;
    const ids = events.map(({ event_id }) => Number(event_id));
    const isWhole = !events.some(({ medium }) => medium === NO_MEDIUM);
    const [firstId = 0, lastId = 0] = [ids[0], ids.at(-1)];
    this.#lastSent = { sequence, lastId, isWhole };
    if (before === null || this.hasSpoken || sequence !== before.sequence + 1n) return;
    const mayFollow = firstId === before.lastId + 1 || !before.isWhole || !isWhole;
    if (firstId > before.lastId && mayFollow) this.isSeamless = true;
  }

  list(): Promise<KeyList> {
    return this.#answer(() => {
      const keys = [...this.tenant('default').keys()];
      return new KeyList(Buffer.from(keys.map((key) => `${key}\n`).join('')));
    });
  }

  query(keys: readonly Uint8Array[]): Promise<readonly (readonly string[])[]> {
    return this.#answer(() =>
      keys.map((key) => [...(this.tenant('default').get(Buffer.from(key).toString()) ?? [])]),
    );
  }

  status(): Promise<PublisherStatus> {
    return this.#answer(() => ({
      enabled: true,
      publishedBatches: this.#batches,
      publishedEvents: this.#eventId,
      droppedEvents: this.#dropped,
      skippedKeylessEvents: 0,
    }));
  }

  async #answer<Value>(make: () => Value): Promise<Value> {
    await this.#pass();
    if (this.#random.chance(this.faults.failure)) throw new MasterError('status', 'standby');
    const value = make();
    await this.#pass();
    return value;
  }

  #pass(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.schedule(resolve, this.#random.next() * this.faults.askMs);
    });
  }
}
