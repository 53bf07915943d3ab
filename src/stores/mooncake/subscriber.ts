/**
 * MooncakeSubscriber: the event socket of one Mooncake master.
 *
 * Frames   [0] topic  always there, empty   [1] u64 big-endian, from 1   [2] MessagePack
 * Out      the payload and number of each message with such frames; others are counted by their fault.
 * Socket   SUB; reconnects for ever, 100 ms to 5 s between attempts, each counted.
 * Bounds   unread messages, bytes a message (above it libzmq drops the peer: a reconnect).
 */
import { Subscriber } from 'zeromq';
import { socketOptions } from '../../connections/zmq.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import { SourceLink } from '../source-link.ts';

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
  readonly #link: SourceLink;

  constructor(options: MooncakeSubscriberOptions, metrics: SourceMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    const { endpoint, onLink } = options;
    this.#socket = new Subscriber({
      ...socketOptions(endpoint, 0),
      receiveHighWaterMark: RECEIVE_HWM,
      maxMessageSize: MAX_MESSAGE_BYTES,
    });
    const onMessage = (frames: readonly Buffer[]): void => this.#take(frames);
    this.#link = new SourceLink({ socket: this.#socket, endpoint, metrics, onMessage, onLink });
  }

  get isConnected(): boolean {
    return this.#link.isConnected;
  }

  /** Arrival of the last message, ms on the monotonic clock; null before the first. */
  get lastMessageAtMs(): number | null {
    return this.#link.lastMessageAtMs;
  }

  start(): void {
    this.#socket.subscribe('');
    this.#link.start();
  }

  stop(): Promise<void> {
    return this.#link.stop();
  }

  #take(frames: readonly Buffer[]): void {
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
}
