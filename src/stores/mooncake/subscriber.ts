/**
 * MooncakeSubscriber: the event socket of one Mooncake master.
 *
 * Frames   [0] topic  always there, empty   [1] u64 big-endian, from 1   [2] MessagePack
 * Out      the payload and number of each message with such frames; others are counted by their fault.
 * Socket   SUB; reconnects for ever, 100 ms to 5 s between attempts, each counted.
 * Bounds   unread messages, bytes a message (above it libzmq drops the peer: a reconnect).
 */
import { Subscriber } from 'zeromq';
import { keepConnected, MessageReader, PeerCount, socketOptions } from '../../connections/zmq.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';

const SEQUENCE_BYTES = 8;
const RECEIVE_HWM = 100_000;

/** Far more than 64 events with the longest keys and names. */
const MAX_MESSAGE_BYTES = 16 << 20;

export interface MooncakeSubscriberOptions {
  readonly endpoint: string;
  /** Must not throw. */
  readonly onMessage: (sequence: bigint, payload: Uint8Array) => void;
  /** A message was lost to its frames: nobody knows what was in it. */
  readonly onMalformed: (fault: 'frames' | 'sequence') => void;
  readonly onLink: (isConnected: boolean) => void;
}

export class MooncakeSubscriber {
  readonly #options: MooncakeSubscriberOptions;
  readonly #metrics: SourceMetrics;
  readonly #socket: Subscriber;
  readonly #peers: PeerCount;
  #reader: MessageReader | null = null;
  #wasConnected = false;
  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  lastMessageAtMs: number | null = null;

  constructor(options: MooncakeSubscriberOptions, metrics: SourceMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#socket = new Subscriber({
      ...socketOptions(options.endpoint, 0),
      receiveHighWaterMark: RECEIVE_HWM,
      maxMessageSize: MAX_MESSAGE_BYTES,
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
    this.#socket.subscribe('');
    const metrics = this.#metrics;
    metrics.connects++;
    keepConnected(this.#socket, this.#options.endpoint, () => {
      metrics.connects++;
    });
    this.#reader = new MessageReader(this.#socket, (frames) => this.#take(frames));
  }

  async stop(): Promise<void> {
    if (this.#reader === null) this.#socket.close();
    else await this.#reader.close(null);
  }

  #take(frames: readonly Buffer[]): void {
    this.lastMessageAtMs = performance.now();
    const [, sequence, payload] = frames;
    if (frames.length !== 3 || sequence === undefined || payload === undefined) {
      this.#refuse('frames');
    } else if (sequence.length !== SEQUENCE_BYTES) {
      this.#refuse('sequence');
    } else {
      this.#metrics.messages++;
      this.#metrics.bytes += payload.length;
      this.#options.onMessage(sequence.readBigUInt64BE(), payload);
    }
  }

  #refuse(fault: 'frames' | 'sequence'): void {
    this.#metrics.malformed[fault]++;
    this.#options.onMalformed(fault);
  }

  #reportLink(): void {
    if (this.isConnected === this.#wasConnected) return;
    this.#wasConnected = this.isConnected;
    this.#options.onLink(this.isConnected);
  }
}
