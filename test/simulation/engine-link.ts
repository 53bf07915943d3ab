/**
 * EngineLink: the network between an engine's event socket and the relay.
 *
 * Live     in order, each once: ZMQ delivers nothing twice. What a full queue or a broken link takes is gone.
 * Breaks   what was under way may still arrive, before the next connection; a connection misses what is
 *          published before its subscription is there.
 * Told     of a loss before the next connection's messages; of a connection before the first of them, or,
 *          since the socket's events come another way, somewhat after.
 */
import type { Random } from './random.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import type { SimulatedListener } from './simulated-listener.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { EngineBatch } from './witness.ts';

const RECONNECT_MS = 100;
const MAX_RECONNECT_MS = 1000;

export class EngineLink {
  readonly #engine: SimulatedEngine;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #log: (text: string) => void;
  #listener: SimulatedListener | null = null;
  /** Counts connections; -1 behind the last one, while there is none. */
  #connection = 0;
  #isUp = false;
  #lastDeliveryMs = 0;
  /** Deliveries of a connection that broke arrive until then. */
  #cutMs = 0;
  /** No connection comes about before. */
  blockedUntilMs = 0;
  dropRate = 0;
  /** Messages under way wait until then. */
  #stalledUntilMs = 0;
  readonly #lagsEvents: boolean;

  constructor(
    engine: SimulatedEngine,
    lagsEvents: boolean,
    clock: VirtualClock,
    random: Random,
    log: (text: string) => void,
  ) {
    this.#engine = engine;
    this.#lagsEvents = lagsEvents;
    this.#clock = clock;
    this.#random = random;
    this.#log = log;
    engine.onPublish = (batch) => this.#send(batch);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Another relay process: its socket begins to connect. */
  attach(listener: SimulatedListener): void {
    this.#listener = listener;
    this.#isUp = false;
    this.#connection++;
    this.#cutMs = 0;
    this.#tryConnect(this.#connection, 0);
  }

  detach(): void {
    this.#listener = null;
    this.#isUp = false;
    this.#connection++;
    this.#cutMs = 0;
  }

  /** The connection ends, be it without a word; another one is tried from then on. */
  cut(isTold = true): void {
    if (!this.#isUp) return;
    const nowMs = this.#clock.nowMs();
    this.#log('link lost');
    this.#isUp = false;
    this.#cutMs = nowMs + this.#random.pick([0, 0, 2, 20]);
    const listener = this.#listener;
    this.#clock.schedule(
      () => {
        if (isTold && listener === this.#listener) listener?.takeLink(false);
      },
      this.#random.pick([0, 1, 10]),
    );
    this.#tryConnect(++this.#connection, RECONNECT_MS);
  }

  stall(ms: number): void {
    this.#stalledUntilMs = this.#clock.nowMs() + ms;
  }

  #tryConnect(connection: number, waitMs: number): void {
    const jitterMs = waitMs * this.#random.next();
    this.#clock.schedule(() => {
      if (connection !== this.#connection) return;
      if (this.#engine.isUp && this.#clock.nowMs() >= this.blockedUntilMs)
        this.#connect(connection);
      else this.#tryConnect(connection, Math.min(MAX_RECONNECT_MS, 2 * waitMs + RECONNECT_MS));
    }, waitMs + jitterMs);
  }

  #connect(connection: number): void {
    this.#isUp = true;
    this.#stalledUntilMs = 0;
    this.#lastDeliveryMs = 0;
    const listener = this.#listener;
    this.#clock.schedule(
      () => {
        if (connection !== this.#connection) return;
        this.#log(`link up, life ${this.#engine.life}`);
        listener?.takeLink(true);
      },
      this.#lagsEvents ? this.#random.pick([0, 1, 5]) : 0,
    );
  }

  #send(batch: EngineBatch): void {
    if (!this.#isUp) return;
    if (this.#random.chance(this.dropRate)) {
      this.#log(`batch ${batch.life}:${batch.sequence} dropped`);
      return;
    }
    const connection = this.#connection;
    const listener = this.#listener;
    const nowMs = this.#clock.nowMs();
    const latencyMs = this.#random.pick([0.2, 0.5, 1, 5]);
    const atMs = Math.max(nowMs + latencyMs, this.#stalledUntilMs, this.#lastDeliveryMs);
    this.#lastDeliveryMs = atMs;
    this.#clock.schedule(() => {
      const isCut = connection !== this.#connection && atMs > this.#cutMs;
      if (!isCut) listener?.takeLive(batch);
    }, atMs - nowMs);
  }
}
