/**
 * SimulatedNats: a NATS server, the relay's connection to it, and the way on to the subscriber.
 *
 * Link     in order; where it breaks, what the server has not got is lost, and the client hears of it
 *          only later: what it is handed meanwhile is lost as well. Open confirmations are rejected then.
 *          A message leaves from the memory that it was given in, and is read there when it arrives.
 * Server   passes on at once what it gets, to a subscriber that is connected at that moment.
 */
import type { NatsConnection, NatsListener, NatsResponder } from '../../src/connections/nats.ts';
import { publicationsIn } from '../support/nats-publications.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** What a plane uses of a connection. */
type Surface = Pick<
  NatsConnection,
  | 'isConnected'
  | 'maxPayloadBytes'
  | 'listen'
  | 'canWrite'
  | 'write'
  | 'confirm'
  | 'respond'
  | 'disconnects'
  | 'connects'
>;

/** Of the server to a request that nobody has subscribed to. */
const NO_RESPONDERS = null;

export class SimulatedNats implements Surface {
  isConnected = false;
  disconnects = 0;
  connects = 0;
  readonly maxPayloadBytes: number;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #deliver: (envelope: Uint8Array) => void;
  readonly #listeners: NatsListener[] = [];
  readonly #responders = new Map<string, (request: Uint8Array) => Uint8Array>();
  #pongs: { resolve: () => void; reject: (error: Error) => void }[] = [];
  /** Whether bytes still reach the server, whatever the client believes. */
  #isAlive = false;
  #connection = 0;
  #lastArrivalMs = 0;
  #stalledUntilMs = 0;
  #isDead = false;
  blockedUntilMs = 0;

  constructor(
    clock: VirtualClock,
    random: Random,
    maxPayloadBytes: number,
    deliver: (envelope: Uint8Array) => void,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.maxPayloadBytes = maxPayloadBytes;
    this.#deliver = deliver;
  }

  listen(listener: NatsListener): void {
    this.#listeners.push(listener);
  }

  start(): void {
    this.#reconnectIn(this.#random.pick([0, 5, 300]));
  }

  get canWrite(): boolean {
    return this.isConnected;
  }

  write(frames: Uint8Array): boolean {
    if (!this.isConnected) return false;
    for (const { frame } of publicationsIn(frames)) {
      // Read where it lies once it arrives: memory that is used again too early shows.
      this.#send(() => {
        for (const { message } of publicationsIn(frame)) this.#deliver(Buffer.from(message));
      });
    }
    return true;
  }

  /** Stands on the server as long as the link does, and again soon after it stands again. */
  respond(subject: string, reply: (request: Uint8Array) => Uint8Array): NatsResponder {
    this.#responders.set(subject, reply);
    const isReady = new Promise<boolean>((resolve) => {
      const look = (): void => {
        this.#clock.followOn();
        if (this.#isAlive || this.#isDead) resolve(this.#isAlive);
        else this.#clock.schedule(look, 50);
      };
      this.#clock.schedule(look, 1);
    });
    return { isReady, stop: () => this.#responders.delete(subject) };
  }

  /** A router's; answered with null where nobody is there. */
  request(subject: string, request: Uint8Array, onReply: (text: string | null) => void): void {
    const latencyMs = this.#random.pick([0.3, 1, 6]);
    this.#clock.schedule(() => {
      const reply = this.#responders.get(subject);
      if (reply === undefined || !this.#isAlive) {
        onReply(NO_RESPONDERS);
        return;
      }
      this.#clock.followOn();
      const text = Buffer.from(reply(request)).toString();
      this.#send(() => onReply(text));
    }, latencyMs);
  }

  confirm(): Promise<void> {
    return new Promise((resolve, reject) => {
      const pong = { resolve, reject };
      this.#pongs.push(pong);
      this.#send(() => {
        this.#pongs = this.#pongs.filter((one) => one !== pong);
        resolve();
      });
    });
  }

  /** The link breaks now; the client notices within `noticedMs`. */
  break(noticedMs: number): void {
    if (!this.#isAlive || this.#isDead) return;
    this.#isAlive = false;
    this.#connection++;
    this.#clock.schedule(() => this.#disconnect(), noticedMs);
  }

  stall(ms: number): void {
    this.#stalledUntilMs = this.#clock.nowMs() + ms;
  }

  /** The process it was part of has ended. */
  kill(): void {
    this.#isDead = true;
    this.#isAlive = false;
    this.isConnected = false;
    this.#connection++;
  }

  #send(arrive: () => void): void {
    if (!this.#isAlive) return;
    const connection = this.#connection;
    const nowMs = this.#clock.nowMs();
    const latencyMs = this.#random.pick([0.1, 0.5, 3]);
    const atMs = Math.max(nowMs + latencyMs, this.#lastArrivalMs, this.#stalledUntilMs);
    this.#lastArrivalMs = atMs;
    this.#clock.schedule(() => {
      if (connection === this.#connection) arrive();
    }, atMs - nowMs);
  }

  #disconnect(): void {
    if (this.#isDead) return;
    this.isConnected = false;
    this.disconnects++;
    const pongs = this.#pongs;
    this.#pongs = [];
    for (const { reject } of pongs) reject(new Error('the link broke'));
    for (const listener of this.#listeners) listener.onDisconnected();
    this.#reconnectIn(this.#random.pick([100, 400, 3000]));
  }

  #reconnectIn(ms: number): void {
    this.#clock.schedule(() => {
      if (this.#isDead) return;
      if (this.#clock.nowMs() < this.blockedUntilMs) {
        this.#reconnectIn(500);
        return;
      }
      this.#isAlive = true;
      this.isConnected = true;
      this.connects++;
      this.#lastArrivalMs = 0;
      this.#stalledUntilMs = 0;
      for (const listener of this.#listeners) listener.onConnected(this.connects === 1);
    }, ms);
  }
}
