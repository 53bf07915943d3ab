/**
 * EngineListener: the event socket of one engine.
 *
 * Out      its messages in order of arrival, well-formed frames only; completes at stop().
 * Socket   SUB, connecting (or bound) with a prefix subscription; reconnects for ever, 100 ms to 5 s.
 * Bounds   unread messages (receiveHwm), bytes a message (above it libzmq drops the peer).
 * Owns     the socket and the watermark; a message it cannot use is counted and passed over.
 */
import { type Observable, Subject } from 'rxjs';
import { Subscriber } from 'zeromq';
import { MessageReader, PeerCount, socketOptions } from '../connections/zmq.ts';
import { KvRelayError } from '../errors.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
import { type EngineMessage, readFrames } from './frames.ts';
import { GapCounter } from './gap-counter.ts';

/** The address of a bound engine socket cannot be bound. */
export class EngineBindError extends KvRelayError {
  readonly code = 'KVR_ENGINE_BIND';

  constructor(endpoint: string, cause: unknown) {
    super(`Cannot bind the engine socket to ${endpoint}`, {
      cause,
      remedy: 'Free the port, give another with --engine-endpoint, or leave --engine-bind out',
    });
  }
}

export interface EngineListenerOptions {
  readonly endpoint: string;
  readonly bind: boolean;
  /** Prefix of the topics taken; empty takes all. */
  readonly topic: string;
  readonly receiveHwm: number;
  readonly maxMessageBytes: number;
  readonly compat: Compat;
  /** Without an engine for this long after the start, that is told once; 30 s where absent. */
  readonly patienceMs?: number;
  /** Told of connects, disconnects and messages that cannot be used; bounds what it says itself. */
  readonly onEvent?: (event: ListenerEvent) => void;
}

export type ListenerEvent =
  | { readonly kind: 'absent'; readonly seconds: number }
  | { readonly kind: 'connected' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'malformed'; readonly reason: 'frames' | 'sequence' }
  | { readonly kind: 'gap'; readonly missingBatches: number };

const PATIENCE_MS = 30_000;

export class EngineListener {
  readonly endpoint: string;
  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  lastMessageAtMs: number | null = null;
  readonly #options: EngineListenerOptions;
  readonly #metrics: RelayMetrics;
  readonly #socket: Subscriber;
  readonly #peers: PeerCount;
  readonly #sequencer = new GapCounter();
  readonly #messages$ = new Subject<EngineMessage>();
  #reader: MessageReader | null = null;
  #wasReported = false;
  #patience: NodeJS.Timeout | undefined;

  /** `metrics` counts the messages; where a socket carries several ranks, those of the first. */
  constructor(options: EngineListenerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.endpoint = options.endpoint;
    this.#socket = new Subscriber({
      ...socketOptions(options.endpoint, 0),
      receiveHighWaterMark: options.receiveHwm,
      maxMessageSize: options.maxMessageBytes,
    });
    this.#peers = new PeerCount(this.#socket, () => this.#reportPeers());
  }

  get messages$(): Observable<EngineMessage> {
    return this.#messages$;
  }

  get isConnected(): boolean {
    return this.#peers.peers > 0;
  }

  /** True once an engine has completed its handshake. */
  get wasConnected(): boolean {
    return this.#peers.connects > 0;
  }

  get lastSequence(): bigint | null {
    return this.#sequencer.highest;
  }

  /** Rejects with an EngineBindError where the address cannot be bound. */
  async start(): Promise<void> {
    const { endpoint, bind, topic } = this.#options;
    this.#socket.subscribe(topic);
    if (bind) await this.#bind();
    else this.#socket.connect(endpoint);
    this.#reader = new MessageReader(this.#socket, (frames) => this.#take(frames));
    this.#awaitEngine();
  }

  /** Ends the stream; what has already arrived is still passed on, for at most `maxMs`. */
  async stop(maxMs: number): Promise<void> {
    const { bind, endpoint } = this.#options;
    clearTimeout(this.#patience);
    if (this.#reader === null) {
      this.#socket.close();
    } else {
      await this.#reader.drain(maxMs);
      await this.#reader.close(bind ? endpoint : null);
    }
    this.#messages$.complete();
  }

  #awaitEngine(): void {
    const { patienceMs = PATIENCE_MS, onEvent } = this.#options;
    this.#patience = setTimeout(() => {
      if (!this.wasConnected) onEvent?.({ kind: 'absent', seconds: patienceMs / 1000 });
    }, patienceMs);
  }

  async #bind(): Promise<void> {
    const { endpoint } = this.#options;
    try {
      await this.#socket.bind(endpoint);
    } catch (cause) {
      throw new EngineBindError(endpoint, cause);
    }
  }

  #take(frames: readonly Buffer[]): void {
    this.lastMessageAtMs = performance.now();
    const message = readFrames(frames, this.#options.compat);
    if (typeof message === 'string') {
      this.#metrics.malformed[message]++;
      this.#options.onEvent?.({ kind: 'malformed', reason: message });
      return;
    }
    this.#metrics.engineBatches++;
    this.#metrics.engineBytes += message.payload.length;
    const missingBatches = this.#sequencer.observe(message.sequence);
    if (missingBatches > 0) {
      this.#metrics.missingBatches += missingBatches;
      this.#metrics.lostBatches += missingBatches;
      // One event a batch at least: Dynamo's own counter does not see what its socket lost.
      if (diverges(this.#options.compat, 'lost-batches')) {
        this.#metrics.droppedEvents += missingBatches;
      }
      this.#options.onEvent?.({ kind: 'gap', missingBatches });
    }
    this.#messages$.next(message);
  }

  #reportPeers(): void {
    if (this.isConnected === this.#wasReported) return;
    this.#wasReported = this.isConnected;
    this.#options.onEvent?.({ kind: this.isConnected ? 'connected' : 'disconnected' });
  }
}
