/**
 * StreamSocket: a DEALER to LMCache's MP server.
 *
 * Sends    one message after the other; what cannot leave at once is dropped, and a time-out of its request tells.
 * Socket   reconnects for ever, 100 ms to 5 s between attempts, each counted.
 * Bounds   bytes a message (above it libzmq drops the peer: a reconnect); unsent messages by libzmq's own mark.
 */
import { Dealer } from 'zeromq';
import {
  isTryAgain,
  keepConnected,
  MessageReader,
  PeerCount,
  socketOptions,
} from '../../connections/zmq.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';

/** Three times the largest batch that is read. */
const MAX_MESSAGE_BYTES = 64 << 20;
const LINGER_MS = 200;

export interface StreamSocketOptions {
  readonly endpoint: string;
  readonly metrics: SourceMetrics;
  /** Must not throw. */
  readonly onMessage: (frames: readonly Buffer[]) => void;
  readonly onLink: (isConnected: boolean) => void;
}

export class StreamSocket {
  readonly #options: StreamSocketOptions;
  readonly #socket: Dealer;
  readonly #peers: PeerCount;
  #reader: MessageReader | null = null;
  #sending: Promise<void> = Promise.resolve();
  #wasConnected = false;
  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  lastMessageAtMs: number | null = null;

  constructor(options: StreamSocketOptions) {
    this.#options = options;
    const { endpoint, metrics } = options;
    this.#socket = new Dealer({
      ...socketOptions(endpoint, LINGER_MS),
      maxMessageSize: MAX_MESSAGE_BYTES,
      sendTimeout: 0,
    });
    this.#peers = new PeerCount(this.#socket, () => this.#reportLink());
    this.#socket.events.on('connect:retry', () => {
      metrics.connects++;
    });
  }

  get isConnected(): boolean {
    return this.#peers.peers > 0;
  }

  start(): void {
    const { endpoint, metrics, onMessage } = this.#options;
    metrics.connects++;
    keepConnected(this.#socket, endpoint, () => {
      metrics.connects++;
    });
    this.#reader = new MessageReader(this.#socket, (frames) => {
      this.lastMessageAtMs = performance.now();
      onMessage(frames);
    });
  }

  send(frames: Buffer[]): void {
    this.#sending = this.#sending.then(async () => {
      if (this.#socket.closed) return;
      try {
        await this.#socket.send(frames);
      } catch (error) {
        if (!isTryAgain(error) && !this.#socket.closed) throw error;
      }
    });
  }

  async stop(): Promise<void> {
    await this.#sending;
    if (this.#reader === null) this.#socket.close();
    else await this.#reader.close(null);
  }

  #reportLink(): void {
    if (this.isConnected === this.#wasConnected) return;
    this.#wasConnected = this.isConnected;
    this.#options.onLink(this.isConnected);
  }
}
