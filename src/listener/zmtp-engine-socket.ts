/** An engine that is connected to, over a ZMTP connection of our own. */
import type { NetConnectOpts } from 'node:net';
import { ZmtpSubscriber } from '../connections/zmtp/zmtp-subscriber.ts';
import type { EngineSocket, EngineSocketOptions } from './engine-socket.ts';
import { readWireMessage } from './frames.ts';

export class ZmtpEngineSocket implements EngineSocket {
  readonly #subscriber: ZmtpSubscriber;

  constructor(options: EngineSocketOptions, address: NetConnectOpts) {
    const { topic, receiveHwm, maxMessageBytes, compat, onMessage, onLink } = options;
    this.#subscriber = new ZmtpSubscriber({
      address,
      topic,
      receiveHwm,
      maxMessageBytes,
      onMessage: (message, nowMs) => {
        const read = readWireMessage(message, compat, nowMs);
        onMessage(read, nowMs);
        return typeof read !== 'string';
      },
      onLink,
    });
  }

  get isConnected(): boolean {
    return this.#subscriber.isLinked;
  }

  get connects(): number {
    return this.#subscriber.links;
  }

  start(): Promise<void> {
    this.#subscriber.start();
    return Promise.resolve();
  }

  drain(maxMs: number): Promise<void> {
    return this.#subscriber.drain(maxMs);
  }

  close(): Promise<void> {
    this.#subscriber.close();
    return Promise.resolve();
  }
}
