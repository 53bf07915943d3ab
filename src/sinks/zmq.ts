/**
 * ZmqPlane: the ZMQ event plane: a publisher that routers connect to, or that connects to brokers.
 *
 * Topic    to a broker the whole subject. Frames: `zmq-frames.ts`.
 * Sends    once a turn of the event loop, as over NATS.
 * Slow     a subscriber that has SEND_HWM messages or MAX_BACKLOG_BYTES unread loses further ones, each counted, until half
 *          has left; others do not notice.
 * Brokers  without any, messages wait in the outbox; behind a new link they wait for its subscriptions.
 * Memory   belongs to the parcels that it leaves in, and is used again once no subscriber has one to come. What a full
 *          outbox drops, and what another publisher leaves behind, takes its slabs out of use.
 * Source   ai-dynamo/dynamo 1.6.1, direct and broker mode of the ZMQ event plane.
 */
import type { NetConnectOpts } from 'node:net';
import { connectAddress } from '../connections/zmtp/net-address.ts';
import { Parcel } from '../connections/zmtp/parcel.ts';
import { ZmtpPublisher } from '../connections/zmtp/zmtp-publisher.ts';
import { assertInvariant, KvRelayError } from '../errors.ts';
import type { PlaneMetrics } from '../metrics/relay-metrics.ts';
import type { ChannelTransport } from '../protocol/discovery-records.ts';
import type { PlaneMessage } from '../protocol/envelope.ts';
import type { MessageRoom } from '../protocol/message-slab.ts';
import { BrokerLink } from './broker-link.ts';
import { Outbox } from './outbox.ts';
import type { Plane, PlaneListener } from './plane.ts';
import { ZmqFrames } from './zmq-frames.ts';

const SEND_HWM = 100_000;

/** Slow subscribers share what they have not read: all of them together hold hardly more. */
const MAX_BACKLOG_BYTES = 256 << 20;

const MAX_SUBSCRIBERS = 4096;

/** What is refused, and what is given back, goes by parcels. */
const MAX_PARCEL_MESSAGES = 64;
const MAX_PARCEL_BYTES = 256 << 10;

/** How long after its last loss a slow subscriber is still shown. */
const SLOW_SHOWN_MS = 10_000;

/** The address of the ZMQ plane cannot be bound. */
export class PlaneBindError extends KvRelayError {
  readonly code = 'KVR_PLANE_BIND';

  constructor(endpoint: string, cause: unknown) {
    super(`Cannot bind the event plane to ${endpoint}`, {
      cause,
      remedy: endpoint.startsWith('ipc://')
        ? 'Make its folder, and free the path, or give another with --plane-endpoint'
        : 'Free the port, or give another with --plane-endpoint (port 0 takes a free one)',
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
  readonly #options: ZmqPlaneOptions;
  readonly #metrics: PlaneMetrics;
  readonly #publisher: ZmtpPublisher;
  readonly #link: BrokerLink;
  #frames: ZmqFrames;
  #outbox: Outbox;
  #endpoint: string | null = null;
  #slowAtMs: number | null = null;
  #isScheduled = false;

  constructor(options: ZmqPlaneOptions, metrics: PlaneMetrics) {
    const { topic, publisherId, outboxBytes, sendHwm = SEND_HWM, onEvent } = options;
    this.#options = options;
    this.#metrics = metrics;
    this.#outbox = new Outbox(outboxBytes);
    this.#frames = new ZmqFrames(topic, publisherId);
    this.#link = new BrokerLink({
      onChange: (isConnected) => onEvent({ kind: isConnected ? 'connected' : 'disconnected' }),
      onLinked: () => this.#schedule(),
    });
    this.#publisher = new ZmtpPublisher({
      topic,
      bounds: { messages: sendHwm, bytes: MAX_BACKLOG_BYTES },
      maxPeers: MAX_SUBSCRIBERS,
      onPeers: () => {
        if (this.#isBrokered) this.#link.takePeers(this.#publisher.peers);
      },
      onLost: (lost) => this.#noteSlow(lost),
      onRefused: () => onEvent({ kind: 'refused', subscribers: MAX_SUBSCRIBERS }),
    });
  }

  get messageRoom(): MessageRoom {
    return this.#frames.room;
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
    return this.#publisher.disconnects;
  }

  get reconnects(): number {
    return Math.max(0, this.#publisher.connects - 1);
  }

  get refusals(): number {
    return this.#publisher.refusals;
  }

  async start(): Promise<void> {
    const { endpoint, brokers, onEvent } = this.#options;
    if (this.#isBrokered) {
      this.#endpoint = brokers.join(',');
      for (const broker of brokers) this.#publisher.connect(brokerAddress(broker));
      return;
    }
    try {
      this.#endpoint = await this.#publisher.bind(endpoint);
    } catch (cause) {
      throw new PlaneBindError(endpoint, cause);
    }
    onEvent({ kind: 'connected' });
  }

  startPublisher(publisherId: number): number {
    const { topic, outboxBytes } = this.#options;
    const left = this.#outbox.length;
    this.#frames = new ZmqFrames(topic, publisherId);
    this.#outbox = new Outbox(outboxBytes);
    return left;
  }

  publish(message: PlaneMessage): void {
    const dropped = this.#outbox.push(message);
    if (dropped > 0) this.#drop('outbox_full', dropped);
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#sendAll();
    this.#link.stop();
    this.#endpoint = null;
    const lost = await this.#publisher.close(this.#options.lingerMs);
    if (lost > 0) this.#drop('slow_subscriber', lost);
  }

  get #isBrokered(): boolean {
    return this.#options.brokers.length > 0;
  }

  get #canSend(): boolean {
    return !this.#isBrokered || this.#link.isLinked;
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#canSend || this.#outbox.waiting === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    while (this.#canSend && this.#outbox.waiting > 0) {
      const parcel = this.#pack();
      const lost = this.#publisher.send(parcel);
      parcel.letGo();
      if (lost > 0) this.#noteSlow(lost);
    }
    this.#publisher.flush();
  }

  #pack(): Parcel {
    const parcel = new Parcel();
    while (parcel.messages < MAX_PARCEL_MESSAGES && parcel.bytes < MAX_PARCEL_BYTES) {
      const message = this.#outbox.take();
      if (message === undefined) break;
      parcel.add(this.#frames.pieces(message), message.slab ?? null);
    }
    return parcel;
  }

  #noteSlow(lost: number): void {
    this.#slowAtMs = performance.now();
    this.#drop('slow_subscriber', lost);
  }

  #drop(reason: 'outbox_full' | 'slow_subscriber', messages: number): void {
    this.#metrics.publishFailures[reason] += messages;
    this.#options.onEvent({ kind: 'dropped', reason });
  }
}

function brokerAddress(endpoint: string): NetConnectOpts {
  const address = connectAddress(endpoint);
  assertInvariant(address !== null, `a broker at ${endpoint}`);
  return address;
}
