/** An engine's event socket of libzmq: bound, or connected to an address that only libzmq knows. */
import { Subscriber } from 'zeromq';
import { keepConnected, MessageReader, PeerCount, socketOptions } from '../connections/zmq.ts';
import { KvRelayError } from '../errors.ts';
import type { EngineSocket, EngineSocketOptions } from './engine-socket.ts';
import { readFrames } from './frames.ts';

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

export class ZmqEngineSocket implements EngineSocket {
  readonly #options: EngineSocketOptions;
  readonly #socket: Subscriber;
  readonly #peers: PeerCount;
  #reader: MessageReader | null = null;

  constructor(options: EngineSocketOptions) {
    this.#options = options;
    this.#socket = new Subscriber({
      ...socketOptions(options.endpoint, 0),
      receiveHighWaterMark: options.receiveHwm,
      maxMessageSize: options.maxMessageBytes,
    });
    this.#peers = new PeerCount(this.#socket, options.onLink);
  }

  get isConnected(): boolean {
    return this.#peers.peers > 0;
  }

  get connects(): number {
    return this.#peers.connects;
  }

  async start(): Promise<void> {
    const { endpoint, bind, topic, compat, onMessage } = this.#options;
    this.#socket.subscribe(topic);
    if (bind) await this.#bind();
    else keepConnected(this.#socket, endpoint);
    this.#reader = new MessageReader(this.#socket, (frames) => {
      const nowMs = performance.now();
      onMessage(readFrames(frames, compat, nowMs), nowMs);
    });
  }

  async drain(maxMs: number): Promise<void> {
    await this.#reader?.drain(maxMs);
  }

  async close(): Promise<void> {
    const { bind, endpoint } = this.#options;
    if (this.#reader === null) this.#socket.close();
    else await this.#reader.close(bind ? endpoint : null);
  }

  async #bind(): Promise<void> {
    const { endpoint } = this.#options;
    try {
      await this.#socket.bind(endpoint);
    } catch (cause) {
      throw new EngineBindError(endpoint, cause);
    }
  }
}
