/**
 * EngineListener: the event socket of one engine, and the requests for what it missed.
 *
 * Out      its messages, well-formed frames only: each once and in order, or, in `strict`, as they come;
 *          gaps and restarts between them, as events. Completes at stop().
 * Socket   SUB, connecting (or bound) with a prefix subscription; reconnects for ever, 100 ms to 5 s. It
 *          is read whatever a replay does.
 * Bounds   unread messages (receiveHwm), bytes a message (a link that brings more ends), batches held.
 * Owns     the sockets and the sequencer; a message it cannot use is counted and passed over.
 */
import { type Observable, Subject } from 'rxjs';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import {
  createEngineSocket,
  type EngineSocket,
  type EngineSocketOptions,
} from './engine-socket.ts';
import { EngineStream } from './engine-stream.ts';
import type { EngineMessage, FrameFault } from './frames.ts';
import { GapCounter } from './gap-counter.ts';
import { ReplayClient } from './replay-client.ts';
import type { SequencerOptions } from './sequencer.ts';

export interface EngineListenerOptions extends Omit<EngineSocketOptions, 'onMessage' | 'onLink'> {
  /** How order is kept; null, in `strict`: it is not. */
  readonly sequencing: Omit<SequencerOptions, 'canAsk'> | null;
  /** The engine's replay socket; null: nobody is asked. */
  readonly replayEndpoint: string | null;
  /** Without an engine for this long after the start, that is told once; 30 s where absent. */
  readonly patienceMs?: number;
  /** Told of connects, disconnects and messages that cannot be used; bounds what it says itself. */
  readonly onEvent?: (event: ListenerEvent) => void;
}

export type ListenerEvent =
  | { readonly kind: 'absent'; readonly seconds: number }
  | { readonly kind: 'connected' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'malformed'; readonly reason: FrameFault; readonly from: 'live' | 'replay' }
  /** Batches are lost for good; where it clears, before the next message. */
  | { readonly kind: 'gap'; readonly lostBatches: number; readonly clears: boolean }
  | { readonly kind: 'restart'; readonly clears: boolean };

const PATIENCE_MS = 30_000;

export class EngineListener {
  readonly endpoint: string;
  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  lastMessageAtMs: number | null = null;
  readonly #options: EngineListenerOptions;
  readonly #metrics: RelayMetrics;
  readonly #socket: EngineSocket;
  readonly #gaps = new GapCounter();
  readonly #stream: EngineStream | null;
  readonly #replays: ReplayClient | null;
  readonly #messages$ = new Subject<EngineMessage>();
  #isStarted = false;
  #wasReported = false;
  #patience: NodeJS.Timeout | undefined;

  /** `metrics` counts the messages; where a socket carries several ranks, those of the first. */
  constructor(options: EngineListenerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.endpoint = options.endpoint;
    this.#replays = this.#createReplays();
    this.#stream = this.#createStream();
    this.#socket = createEngineSocket({
      ...options,
      onMessage: (message, nowMs) => this.#take(message, nowMs),
      onLink: () => this.#reportLink(),
    });
  }

  get messages$(): Observable<EngineMessage> {
    return this.#messages$;
  }

  get isConnected(): boolean {
    return this.#socket.isConnected;
  }

  /** True once an engine has completed its handshake. */
  get wasConnected(): boolean {
    return this.#socket.connects > 0;
  }

  /** Handshakes so far. */
  get connects(): number {
    return this.#socket.connects;
  }

  /** Highest number of the engine's present life; null before the first. */
  get lastSequence(): bigint | null {
    return this.#stream === null ? this.#gaps.highest : this.#stream.liveSequence;
  }

  /** Number of the batch that was passed on last; null before the first. */
  get emittedSequence(): bigint | null {
    return this.#stream === null ? this.#gaps.highest : this.#stream.emittedSequence;
  }

  /** Batches that wait for those before them. */
  get heldBatches(): number {
    return this.#stream?.heldBatches ?? 0;
  }

  get replay(): 'none' | 'idle' | 'running' {
    return this.#stream?.replay ?? 'none';
  }

  /** The first replay is over, or there is none. */
  get isCaughtUp(): boolean {
    return this.#stream?.isCaughtUp ?? true;
  }

  /** Rejects with an EngineBindError where the address cannot be bound. */
  async start(): Promise<void> {
    await this.#socket.start();
    this.#isStarted = true;
    this.#awaitEngine();
  }

  /** Ends the stream; what has already arrived is still passed on, for at most `maxMs`. */
  async stop(maxMs: number): Promise<void> {
    clearTimeout(this.#patience);
    if (this.#isStarted) {
      await this.#socket.drain(maxMs);
      this.#stream?.finish();
      await this.#replays?.stop();
    }
    await this.#socket.close();
    this.#messages$.complete();
  }

  #awaitEngine(): void {
    const { patienceMs = PATIENCE_MS, onEvent } = this.#options;
    this.#patience = setTimeout(() => {
      if (!this.wasConnected) onEvent?.({ kind: 'absent', seconds: patienceMs / 1000 });
    }, patienceMs);
  }

  #take(message: EngineMessage | FrameFault, nowMs: number): void {
    this.lastMessageAtMs = nowMs;
    if (typeof message === 'string') {
      this.#noteMalformed(message, 'live');
      return;
    }
    this.#metrics.engineBatches++;
    this.#metrics.engineBytes += message.payload.length;
    if (this.#stream !== null) this.#stream.takeLive(message);
    else this.#passOn(message);
  }

  /** `strict`: gaps are counted, and nothing else is made of them. */
  #passOn(message: EngineMessage): void {
    const lostBatches = this.#gaps.observe(message.sequence);
    if (lostBatches > 0) {
      this.#metrics.missingBatches += lostBatches;
      this.#metrics.lostBatches += lostBatches;
      this.#options.onEvent?.({ kind: 'gap', lostBatches, clears: false });
    }
    this.#messages$.next(message);
  }

  #noteMalformed(reason: FrameFault, from: 'live' | 'replay'): void {
    this.#metrics.malformed[reason]++;
    this.#options.onEvent?.({ kind: 'malformed', reason, from });
  }

  #createStream(): EngineStream | null {
    const { sequencing, onEvent } = this.#options;
    if (sequencing === null) return null;
    const replays = this.#replays;
    return new EngineStream({
      options: { ...sequencing, canAsk: replays !== null },
      metrics: this.#metrics,
      transport: replays ?? { ask: () => undefined, drop: () => undefined },
      onMessage: (message) => this.#messages$.next(message),
      onGap: (lostBatches, clears) => onEvent?.({ kind: 'gap', lostBatches, clears }),
      onRestart: (clears) => onEvent?.({ kind: 'restart', clears }),
    });
  }

  #createReplays(): ReplayClient | null {
    const { replayEndpoint, topic, maxMessageBytes, sequencing } = this.#options;
    if (replayEndpoint === null || sequencing === null) return null;
    return new ReplayClient({
      endpoint: replayEndpoint,
      topic,
      maxMessageBytes,
      connectMs: sequencing.idleMs,
      onMessage: (id, message) => {
        if (message === 'end') this.#stream?.takeReplayEnd(id);
        else this.#stream?.takeReplayed(id, message);
      },
      onMalformed: (reason) => this.#noteMalformed(reason, 'replay'),
      onFailure: (id) => this.#stream?.takeReplayFailure(id),
    });
  }

  #reportLink(): void {
    if (this.isConnected === this.#wasReported) return;
    this.#wasReported = this.isConnected;
    this.#options.onEvent?.({ kind: this.isConnected ? 'connected' : 'disconnected' });
    this.#stream?.takeLink(this.isConnected);
  }
}
