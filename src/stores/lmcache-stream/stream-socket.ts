/**
 * StreamSocket: a DEALER to LMCache's MP server.
 *
 * Sends    one message after the other; what cannot leave at once is dropped, and a time-out of its request tells.
 * Link     see SourceLink.
 * Bounds   bytes a message (above it libzmq drops the peer: a reconnect); unsent messages by libzmq's own mark.
 */
import { Dealer } from 'zeromq';
import { isTryAgain, socketOptions } from '../../connections/zmq.ts';
import { SourceLink, type SourceLinkOptions } from '../source-link.ts';

/** Three times the largest batch that is read. */
const MAX_MESSAGE_BYTES = 64 << 20;
const LINGER_MS = 200;

export type StreamSocketOptions = Omit<SourceLinkOptions, 'socket'>;

export class StreamSocket {
  readonly #socket: Dealer;
  readonly #link: SourceLink;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: StreamSocketOptions) {
    this.#socket = new Dealer({
      ...socketOptions(options.endpoint, LINGER_MS),
      maxMessageSize: MAX_MESSAGE_BYTES,
      sendTimeout: 0,
    });
    this.#link = new SourceLink({ ...options, socket: this.#socket });
  }

  get isConnected(): boolean {
    return this.#link.isConnected;
  }

  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  get lastMessageAtMs(): number | null {
    return this.#link.lastMessageAtMs;
  }

  start(): void {
    this.#link.start();
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
    await this.#link.stop();
  }
}
