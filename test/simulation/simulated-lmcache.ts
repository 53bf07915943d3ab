/**
 * An LMCache server for simulations, plain: a bounded log, one subscription an instance, a batch a credit. What goes
 * over a link arrives in order and late, and what is on its way when the link breaks does not arrive.
 */
import { pack, unpack } from 'msgpackr';
import { batchPayload, removedRecord, storedRecord } from '../support/lmcache-stream.ts';
import type { Random } from './random.ts';
import type { SimulatedStoreClock } from './store-clock.ts';

interface LogRecord {
  readonly seq: number;
  /** Empty: a loss. */
  readonly model: string;
  readonly record: object;
}

interface Subscription {
  readonly link: SimulatedLink;
  readonly uid: Buffer;
  readonly model: string;
  readonly page: number;
  cursor: number;
  hasCredit: boolean;
  isFirst: boolean;
}

const OPERATION = Buffer.from(pack('subscribe_kv_events'));

export interface ServerFaults {
  /** Chances: an event is dropped by the bus, with a marker in the log; a request is not answered. */
  drop: number;
  deaf: number;
}

export class SimulatedLmcache {
  /** Hashes in hex by model. */
  readonly held: Map<string, Set<string>> = new Map();
  readonly faults: ServerFaults;
  lost = 0;
  restarts = 0;
  readonly #random: Random;
  readonly #maxRecords: number;
  readonly #subscriptions = new Map<number, Subscription>();
  #incarnation = 1_796_000_000_000_000_001n;
  #log: LogRecord[] = [];
  #nextSeq = 1;

  constructor(random: Random, maxRecords: number, faults: ServerFaults) {
    this.#random = random;
    this.#maxRecords = maxRecords;
    this.faults = faults;
  }

  l1(model: string): Set<string> {
    const known = this.held.get(model) ?? new Set<string>();
    this.held.set(model, known);
    return known;
  }

  store(model: string, hash: Buffer, parent: Buffer | null, tokens: readonly number[]): void {
    this.l1(model).add(hash.toString('hex'));
    this.#record(model, (seq) => storedRecord(seq, hash, parent, tokens, model));
  }

  evict(model: string, ...hashes: readonly Buffer[]): void {
    for (const hash of hashes) this.l1(model).delete(hash.toString('hex'));
    this.#record(model, (seq) => removedRecord(seq, hashes, model));
  }

  restart(): void {
    this.restarts++;
    this.held.clear();
    this.#incarnation += 1n;
    this.#log = [];
    this.#nextSeq = 1;
    this.#subscriptions.clear();
  }

  /** Ends one subscription, as for want of pings. */
  end(): void {
    for (const [instance, { link, uid }] of this.#subscriptions) {
      this.#subscriptions.delete(instance);
      link.toClient([uid, OPERATION]);
      return;
    }
  }

  /** What the log alone says is held: what somebody who comes now can know. */
  inLog(model: string): Set<string> {
    const { events } = this.#read(model, 0, Number.POSITIVE_INFINITY);
    const found = new Set<string>();
    for (const event of events as { kind: string; block_hashes: Buffer[] }[]) {
      for (const hash of event.block_hashes) {
        if (event.kind === 'stored') found.add(hash.toString('hex'));
        else found.delete(hash.toString('hex'));
      }
    }
    return found;
  }

  take(link: SimulatedLink, frames: readonly Buffer[]): void {
    const [uid, operation, ...rest] = frames as [Buffer, Buffer, ...Buffer[]];
    if (operation.length === 0) this.#control(uid, String(rest[0]), link);
    else if (operation.equals(OPERATION) && !this.#random.chance(this.faults.deaf)) {
      const [instance, model, cursor, page] = rest.map((frame) => unpack(frame) as never);
      const before = this.#subscriptions.get(Number(instance));
      before?.link.toClient([before.uid, OPERATION]);
      const subscription = { link, uid, model: String(model), page: Number(page) };
      this.#subscriptions.set(Number(instance), {
        ...subscription,
        cursor: Number(cursor),
        hasCredit: true,
        isFirst: true,
      });
      this.#push();
    }
  }

  #control(uid: Buffer, word: string, link: SimulatedLink): void {
    for (const [instance, subscription] of this.#subscriptions) {
      if (subscription.link !== link || !subscription.uid.equals(uid)) continue;
      if (word === 'cancel') this.#subscriptions.delete(instance);
      else subscription.hasCredit = true;
    }
    this.#push();
  }

  #record(model: string, make: (seq: number) => object): void {
    const seq = this.#nextSeq++;
    const isLost = this.#random.chance(this.faults.drop);
    if (isLost) this.lost++;
    this.#log.push({ seq, model: isLost ? '' : model, record: make(seq) });
    if (this.#log.length > this.#maxRecords) this.#log.shift();
    this.#push();
  }

  #push(): void {
    for (const subscription of this.#subscriptions.values()) {
      if (!subscription.hasCredit) continue;
      const batch = this.#read(subscription.model, subscription.cursor, subscription.page);
      subscription.cursor = batch.next_cursor;
      if (!subscription.isFirst && batch.events.length === 0 && !batch.lost) continue;
      subscription.isFirst = false;
      subscription.hasCredit = false;
      const payload = batchPayload({ ...batch, incarnation: this.#incarnation });
      subscription.link.toClient([subscription.uid, OPERATION, payload]);
    }
  }

  #read(
    model: string,
    cursor: number,
    page: number,
  ): { events: object[]; lost: boolean; next_cursor: number } {
    const last = this.#nextSeq - 1;
    const first = this.#log[0]?.seq ?? last + 1;
    let events: object[] = [];
    let lost = cursor + 1 < first || cursor > last;
    let next = Math.min(cursor, last);
    for (const record of this.#log) {
      if (record.seq <= cursor) continue;
      next = record.seq;
      if (record.model === '') {
        lost = true;
        events = [];
      } else if (record.model === model && events.push(record.record) >= page) break;
    }
    return { events, lost, next_cursor: next };
  }
}

export interface LinkOptions {
  readonly clock: SimulatedStoreClock;
  readonly random: Random;
  readonly maxDelayMs: number;
  readonly server: SimulatedLmcache;
  readonly onMessage: (frames: readonly Buffer[]) => void;
  readonly onLink: (isLinked: boolean) => void;
}

export class SimulatedLink {
  isUp = false;
  readonly #options: LinkOptions;
  #life = 0;
  #arrivals = { client: 0, server: 0 };

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  up(): void {
    this.isUp = true;
    this.#options.onLink(true);
  }

  cut(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.#life++;
    this.#options.onLink(false);
  }

  toServer(frames: readonly Buffer[]): void {
    this.#pass('server', () => this.#options.server.take(this, frames));
  }

  toClient(frames: readonly Buffer[]): void {
    this.#pass('client', () => this.#options.onMessage(frames));
  }

  #pass(to: 'client' | 'server', arrive: () => void): void {
    const { clock, random, maxDelayMs } = this.#options;
    if (!this.isUp) return;
    const life = this.#life;
    const atMs = Math.max(this.#arrivals[to], clock.nowMs() + random.next() * maxDelayMs);
    this.#arrivals[to] = atMs;
    clock.schedule(() => {
      if (life === this.#life) arrive();
    }, atMs - clock.nowMs());
  }
}
