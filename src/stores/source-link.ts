/**
 * SourceLink: the socket on which a source is heard, whatever its kind.
 *
 * Link     kept up for ever, 100 ms to 5 s between attempts, each counted; `onLink` is told once of each change.
 * Reads    every message in its turn, from `start` on.
 */
import { keepConnected, MessageReader, PeerCount } from '../connections/zmq.ts';
import type { SourceMetrics } from '../metrics/source-metrics.ts';

/** A socket that connects and receives. */
type SourceSocket = Parameters<typeof keepConnected>[0] &
  ConstructorParameters<typeof MessageReader>[0];

export interface SourceLinkOptions {
  readonly socket: SourceSocket;
  readonly endpoint: string;
  readonly metrics: SourceMetrics;
  /** Must not throw. */
  readonly onMessage: (frames: readonly Buffer[]) => void;
  readonly onLink: (isConnected: boolean) => void;
}

export class SourceLink {
  readonly #options: SourceLinkOptions;
  readonly #peers: PeerCount;
  #reader: MessageReader | null = null;
  #wasConnected = false;
  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  lastMessageAtMs: number | null = null;

  constructor(options: SourceLinkOptions) {
    this.#options = options;
    const { socket, metrics } = options;
    this.#peers = new PeerCount(socket, () => this.#reportLink());
    socket.events.on('connect:retry', () => {
      metrics.connects++;
    });
  }

  get isConnected(): boolean {
    return this.#peers.peers > 0;
  }

  start(): void {
    const { socket, endpoint, metrics, onMessage } = this.#options;
    metrics.connects++;
    keepConnected(socket, endpoint, () => {
      metrics.connects++;
    });
    this.#reader = new MessageReader(socket, (frames) => {
      this.lastMessageAtMs = performance.now();
      onMessage(frames);
    });
  }

  /** Also before `start`. */
  async stop(): Promise<void> {
    if (this.#reader === null) this.#options.socket.close();
    else await this.#reader.close(null);
  }

  #reportLink(): void {
    if (this.isConnected === this.#wasConnected) return;
    this.#wasConnected = this.isConnected;
    this.#options.onLink(this.isConnected);
  }
}
