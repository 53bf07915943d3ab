/**
 * ZmqPlane: the ZMQ event plane: one bound publisher socket, or one that is connected to brokers.
 *
 * Frames   [0] topic; to a broker the whole subject   [1] publisher id, 8 bytes BE
 *          [2] sequence, 8 bytes BE
 *          [3] 0x01, envelope length as u32 BE, envelope
 * Slow     a subscriber that has SEND_HWM messages unread loses further ones; others do not notice.
 *          libzmq drops without a word, so messages are sent with no-drop: the first one refused counts
 *          as an episode and goes out dropping; until the slow one has caught up, libzmq passes it over.
 * Brokers  without any, messages wait in the outbox; behind a new link they wait for its subscriptions.
 * Source   ai-dynamo/dynamo 1.6.1, direct and broker mode of the ZMQ event plane.
 */
import { XPublisher } from 'zeromq';
import { isTryAgain, MessageReader, PeerCount, socketOptions } from '../connections/zmq.ts';
import { KvRelayError } from '../errors.ts';
import type { PlaneMetrics } from '../metrics/relay-metrics.ts';
import type { ChannelTransport } from '../protocol/discovery-records.ts';
import type { PlaneMessage } from '../protocol/envelope.ts';
import { type MessageRoom, NO_ROOM } from '../protocol/message-slab.ts';
import { BrokerLink } from './broker-link.ts';
import { Outbox, type OutboxMessage } from './outbox.ts';
import type { Plane, PlaneListener } from './plane.ts';

const SEND_HWM = 100_000;
const FRAME_VERSION = 1;

/**
 * Of a subscription: longer ones lose their link. libzmq keeps a node for each byte of a topic, so that one
 * of some hundred megabytes would take all memory.
 */
const MAX_SUBSCRIPTION_BYTES = 16 << 10;

/** Without heartbeats, a subscriber's host that is gone is noticed after a minute. */
const KEEPALIVE_IDLE_S = 30;
const KEEPALIVE_INTERVAL_S = 10;
const KEEPALIVE_COUNT = 3;

/** How long after its last loss a slow subscriber is still shown. */
const SLOW_SHOWN_MS = 10_000;

/** The address of the ZMQ plane cannot be bound. */
export class PlaneBindError extends KvRelayError {
  readonly code = 'KVR_PLANE_BIND';

  constructor(endpoint: string, cause: unknown) {
    super(`Cannot bind the event plane to ${endpoint}`, {
      cause,
      remedy: 'Free the port, or give another with --plane-endpoint (port 0 takes a free one)',
    });
  }
}

export interface ZmqPlaneOptions {
  /** Where to bind; without a meaning where there are brokers. */
  readonly endpoint: string;
  /** Addresses to connect to; none: routers connect to us. */
  readonly brokers: readonly string[];
  /** First frame. */
  readonly topic: string;
  readonly publisherId: number;
  /** The address that routers are told, for the one that is bound. */
  readonly advertise: (boundEndpoint: string) => string;
  readonly outboxBytes: number;
  /** How long sent messages may linger in the socket after stop(). */
  readonly lingerMs: number;
  readonly onEvent: PlaneListener;
  /** Unread messages a subscriber may have; fewer only where a test wants to fill it. */
  readonly sendHwm?: number;
}

export class ZmqPlane implements Plane {
  readonly kind = 'zmq';
  readonly maxMessageBytes: number = Number.POSITIVE_INFINITY;
  readonly messageRoom: MessageRoom = NO_ROOM;
  readonly #options: ZmqPlaneOptions;
  readonly #metrics: PlaneMetrics;
  readonly #socket: XPublisher;
  readonly #peers: PeerCount;
  readonly #topic: Buffer;
  #publisherId: Buffer;
  #outbox: Outbox;
  readonly #link: BrokerLink;
  #endpoint: string | null = null;
  #slowAtMs: number | null = null;
  #sending: Promise<void> | null = null;
  #subscriptions: MessageReader | null = null;

  constructor(options: ZmqPlaneOptions, metrics: PlaneMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#outbox = new Outbox(options.outboxBytes);
    this.#topic = Buffer.from(options.topic);
    this.#publisherId = u64(options.publisherId);
    this.#socket = new XPublisher({
      ...socketOptions(options.brokers[0] ?? options.endpoint, options.lingerMs),
      // A subscriber that does not read answers no heartbeat either: its link, and all that waits for
      // it, would be dropped unseen. At the high-water mark it is counted instead.
      heartbeatInterval: 0,
      tcpKeepaliveIdle: KEEPALIVE_IDLE_S,
      tcpKeepaliveInterval: KEEPALIVE_INTERVAL_S,
      tcpKeepaliveCount: KEEPALIVE_COUNT,
      sendHighWaterMark: options.sendHwm ?? SEND_HWM,
      maxMessageSize: MAX_SUBSCRIPTION_BYTES,
      // Refused at once instead of waiting for the slowest.
      noDrop: true,
      sendTimeout: 0,
    });
    this.#link = new BrokerLink({
      onChange: (isConnected) =>
        options.onEvent({ kind: isConnected ? 'connected' : 'disconnected' }),
      onLinked: () => this.#flush(),
    });
    this.#peers = new PeerCount(this.#socket, () => {
      if (this.#isBrokered) this.#link.takePeers(this.#peers.peers);
    });
  }

  /** A bound socket needs nobody to be ready. */
  get isConnected(): boolean {
    return this.#endpoint !== null && (!this.#isBrokered || this.#link.isConnected);
  }

  get channel(): ChannelTransport | null {
    if (this.#isBrokered || this.#endpoint === null) return null;
    return { kind: 'zmq', endpoint: this.#options.advertise(this.#endpoint) };
  }

  get endpoint(): string | null {
    return this.#endpoint;
  }

  get hasSlowSubscriber(): boolean {
    return this.#slowAtMs !== null && performance.now() - this.#slowAtMs < SLOW_SHOWN_MS;
  }

  get outboxBytes(): number {
    return this.#outbox.bytes;
  }

  get outboxMessages(): number {
    return this.#outbox.length;
  }

  get disconnects(): number {
    return this.#peers.disconnects;
  }

  get reconnects(): number {
    return Math.max(0, this.#peers.connects - 1);
  }

  async start(): Promise<void> {
    const { endpoint, brokers, onEvent } = this.#options;
    if (this.#isBrokered) {
      this.#endpoint = brokers.join(',');
      for (const broker of brokers) this.#socket.connect(broker);
      this.#subscriptions = new MessageReader(this.#socket, () => undefined);
      return;
    }
    try {
      await this.#socket.bind(endpoint);
    } catch (cause) {
      throw new PlaneBindError(endpoint, cause);
    }
    this.#endpoint = this.#socket.lastEndpoint ?? endpoint;
    // Subscriptions have to be read, or they pile up in the socket.
    this.#subscriptions = new MessageReader(this.#socket, () => undefined);
    onEvent({ kind: 'connected' });
  }

  startPublisher(publisherId: number): number {
    const left = this.#outbox.length;
    this.#publisherId = u64(publisherId);
    this.#outbox = new Outbox(this.#options.outboxBytes);
    return left;
  }

  publish(message: PlaneMessage): void {
    const dropped = this.#outbox.push(message);
    this.#metrics.publishFailures.outbox_full += dropped;
    this.#flush();
  }

  async stop(): Promise<void> {
    this.#link.stop();
    await this.#sending;
    const endpoint = this.#isBrokered ? null : this.#endpoint;
    this.#endpoint = null;
    if (this.#subscriptions === null) this.#socket.close();
    else await this.#subscriptions.close(endpoint);
  }

  get #canSend(): boolean {
    return !this.#isBrokered || this.#link.isLinked;
  }

  #flush(): void {
    if (this.#canSend && this.#outbox.waiting > 0) this.#sending ??= this.#sendAll();
  }

  /** The one writer of the socket: a second send at the same time would be refused. */
  async #sendAll(): Promise<void> {
    while (this.#canSend) {
      const outbox = this.#outbox;
      const message = outbox.next();
      if (message === undefined) break;
      try {
        await this.#send(this.#frames(message));
        outbox.confirm(message.sequence);
      } catch (error) {
        this.#metrics.publishFailures.client++;
        this.#options.onEvent({ kind: 'error', error });
      }
    }
    this.#sending = null;
  }

  get #isBrokered(): boolean {
    return this.#options.brokers.length > 0;
  }

  async #send(frames: Buffer[]): Promise<void> {
    try {
      await this.#socket.send(frames);
    } catch (error) {
      if (!isTryAgain(error)) throw error;
      this.#slowAtMs = performance.now();
      this.#metrics.publishFailures.slow_subscriber++;
      this.#options.onEvent({ kind: 'dropped', reason: 'slow_subscriber' });
      this.#socket.noDrop = false;
      await this.#socket.send(frames);
      this.#socket.noDrop = true;
    }
  }

  #frames({ sequence, envelope }: OutboxMessage): Buffer[] {
    const frame = Buffer.allocUnsafe(5 + envelope.length);
    frame.writeUInt8(FRAME_VERSION, 0);
    frame.writeUInt32BE(envelope.length, 1);
    envelope.copy(frame, 5);
    return [this.#topic, this.#publisherId, u64(sequence), frame];
  }
}

function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
