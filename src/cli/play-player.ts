/**
 * Player: plays messages as an engine would publish them, once or over and over.
 *
 * Pace     the recorded times, a rate, or as fast as it goes.
 * Numbers  given anew, from the first one on in each life; what is no batch has none and is sent as
 *          it was recorded.
 * Again    at the end of a pass an AllBlocksCleared a rank: the next one starts with an empty cache.
 * Restart  both sockets are closed and opened on the same ports; the messages begin anew as well.
 * Faults   live messages that are left out or late; the replay has them all, and at once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pack } from 'msgpackr';
import {
  type EngineAddresses,
  LINGER_MS,
  PlayedEngine,
  type PlayedEngineOptions,
} from './play-engine.ts';
import { Pace, randomFrom, rankOf } from './play-pace.ts';
import { RecordingError } from './recording.ts';
import type { RecordedMessage } from './recording-members.ts';

export interface PlayerOptions {
  readonly engine: PlayedEngineOptions;
  /** The messages of one pass. */
  readonly messages: () => AsyncIterable<RecordedMessage>;
  /** Batches a second; 0: as fast as it goes; null: the recorded times. */
  readonly rate: number | null;
  readonly loops: boolean;
  /** Nothing is published while nobody is subscribed. */
  readonly waits: boolean;
  /** Probability with which a live message is left out. */
  readonly drop: number;
  readonly seed: number;
  /** By how much live messages are late. */
  readonly delayMs: number;
  /** Batches after which the engine begins anew, once; null: never. */
  readonly restartAt: number | null;
  readonly onEvent: (event: PlayEvent) => void;
}

export type PlayEvent =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'playing' }
  | { readonly kind: 'again' }
  | ({ readonly kind: 'restarted' } & EngineAddresses);

/** Messages and time after which requests, signals and timers get their turn. */
const TURN_MESSAGES = 64;
const TURN_MS = 4;
/** Late messages that may wait; beyond it the play itself waits for them. */
const MAX_LATE_MESSAGES = 10_000;
/** Ranks that are told apart; a stream that names more is no worker. */
const MAX_RANKS = 1024;
const SEQUENCE_BYTES = 8;

interface LateMessage {
  readonly dueMs: number;
  readonly frames: Buffer[];
}

export class Player {
  readonly #options: PlayerOptions;
  readonly #stopping = new AbortController();
  readonly #stopped: Promise<void>;
  readonly #ranks = new Set<number>();
  readonly #random: () => number;
  #engine: PlayedEngine;
  /** What a restarted engine is: it has the ports of the first one. */
  #nextLife: PlayedEngineOptions;
  #restartsAt: number;
  #late: LateMessage[] = [];
  #sending: Promise<void> | null = null;
  #turnMessages = 0;
  #turnStartMs = 0;
  /** Messages played, whether they were sent or not. */
  batches = 0;
  dropped = 0;

  constructor(options: PlayerOptions) {
    this.#options = options;
    this.#engine = new PlayedEngine(options.engine);
    this.#nextLife = options.engine;
    this.#random = randomFrom(options.seed);
    this.#restartsAt = options.restartAt ?? Number.POSITIVE_INFINITY;
    this.#stopped = new Promise((resolve) => {
      this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** The addresses; rejects where they cannot be had. */
  async open(): Promise<EngineAddresses> {
    const addresses = await this.#engine.open();
    this.#nextLife = { ...this.#options.engine, ...addresses, firstSequence: 0n };
    return addresses;
  }

  /** Resolves at the end of the last pass, or after stop(). Rejects where there is nothing to play. */
  async play(): Promise<void> {
    try {
      for (let end = await this.#pass(); end !== 'stopped'; end = await this.#pass()) {
        if (end === 'restart') {
          await this.#restart();
        } else if (this.#options.loops) {
          await this.clear();
          this.#options.onEvent({ kind: 'again' });
        } else {
          break;
        }
      }
      await this.#sending;
    } catch (error) {
      if (!this.#isStopping) throw error;
    }
  }

  /** Publishes an AllBlocksCleared, in vLLM 0.33's form, for each rank seen, or for this one. */
  async clear(rank?: number): Promise<void> {
    if (rank !== undefined) this.#ranks.add(rank);
    for (const dpRank of this.#ranks.size === 0 ? [0] : this.#ranks) {
      const batch = [Date.now() / 1000, [{ type: 'AllBlocksCleared' }], dpRank];
      await this.#publish(Buffer.alloc(0), pack(batch));
    }
  }

  /** Ends the play where it is, and closes the sockets; resolves once what was sent had its time to leave. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#late = [];
    await this.#sending?.catch(() => undefined);
    const lingerMs = this.#engine.hasSubscriber ? LINGER_MS : 0;
    await this.#engine.close();
    await sleep(lingerMs);
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Plays all messages, or those before the restart. */
  async #pass(): Promise<'ended' | 'restart' | 'stopped'> {
    const pace = new Pace(this.#options.rate);
    let played = 0;
    for await (const message of this.#options.messages()) {
      await this.#waitFor(pace.waitMs(message.atMs));
      if (!this.#isStopping) await this.#play(message.frames);
      if (this.#isStopping) return 'stopped';
      this.batches++;
      played++;
      if (this.batches === this.#restartsAt) return 'restart';
    }
    if (played === 0) throw new RecordingError('There is no message to play');
    return 'ended';
  }

  async #restart(): Promise<void> {
    this.#restartsAt = Number.POSITIVE_INFINITY;
    await this.#sending;
    await this.#engine.close();
    this.#engine = new PlayedEngine(this.#nextLife);
    const addresses = await this.#engine.open();
    this.#options.onEvent({ kind: 'restarted', ...addresses });
  }

  async #play(frames: readonly Uint8Array[]): Promise<void> {
    const [topic, sequence, payload] = frames;
    const isBatch = frames.length === 3 && sequence?.length === SEQUENCE_BYTES;
    if (isBatch && topic !== undefined && payload !== undefined) {
      if (this.#options.loops) this.#noteRank(payload);
      await this.#publish(topic, payload);
    } else if (frames.length > 0) {
      await this.#waitForSubscriber();
      await this.#sendLive(frames.map((frame) => Buffer.from(frame)));
    }
  }

  async #publish(topic: Uint8Array, payload: Uint8Array): Promise<void> {
    await this.#waitForSubscriber();
    if (this.#isStopping) return;
    await this.#sendLive(this.#engine.number(topic, payload));
  }

  async #sendLive(frames: Buffer[]): Promise<void> {
    const { drop, delayMs } = this.#options;
    if (drop > 0 && this.#random() < drop) {
      this.dropped++;
    } else if (delayMs === 0) {
      if (!this.#isStopping) await this.#engine.send(frames);
    } else {
      this.#late.push({ dueMs: performance.now() + delayMs, frames });
      this.#sending ??= this.#sendLate();
      if (this.#late.length > MAX_LATE_MESSAGES) await this.#sending;
    }
  }

  /** The one sender of late messages, in their order, until there are none. */
  async #sendLate(): Promise<void> {
    for (let first = this.#late[0]; first !== undefined; first = this.#late[0]) {
      await this.#sleep(first.dueMs - performance.now());
      if (this.#isStopping) break;
      const due = this.#late.findIndex(({ dueMs }) => dueMs > performance.now());
      const messages = this.#late.splice(0, due < 0 ? this.#late.length : due);
      for (const { frames } of messages) await this.#engine.send(frames);
    }
    this.#sending = null;
  }

  async #waitForSubscriber(): Promise<void> {
    if (!this.#options.waits || this.#engine.hasSubscriber) return;
    this.#options.onEvent({ kind: 'waiting' });
    await Promise.race([this.#engine.subscribed(), this.#stopped]);
    if (!this.#isStopping) this.#options.onEvent({ kind: 'playing' });
  }

  async #waitFor(waitMs: number): Promise<void> {
    const nowMs = performance.now();
    if (waitMs >= 1) await this.#sleep(waitMs);
    else if (++this.#turnMessages < TURN_MESSAGES && nowMs - this.#turnStartMs < TURN_MS) return;
    else await new Promise((resolve) => void setImmediate(resolve));
    this.#turnMessages = 0;
    this.#turnStartMs = performance.now();
  }

  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(Math.max(ms, 0), undefined, { signal }).catch(() => undefined);
  }

  #noteRank(payload: Uint8Array): void {
    const rank = rankOf(payload);
    if (rank !== null && this.#ranks.size < MAX_RANKS) this.#ranks.add(rank);
  }
}
