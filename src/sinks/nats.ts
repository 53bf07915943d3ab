/**
 * NatsPlane: core NATS, one subject, nothing lost on the way to the server.
 *
 * Message  the envelope alone: no headers, no reply.
 * Sends    once a turn of the event loop: a write for each message costs more than the message. At most
 *          WINDOW_BYTES are on their way unconfirmed, which is all that a broken link can swallow.
 * Confirms by PONG: a probe each PROBE_MS or PROBE_BYTES, never one a message.
 * Resends  after a reconnect, once subscribers had time to be back: the same bytes, numbers and ids.
 * Down     messages wait in the outbox, bounded; the oldest go first, counted once it is known that they are lost.
 * Memory   is sent as it lies, so it may be used again only when no socket can still read it: once a PONG has come to
 *          a PING behind it, or once another link stands, as the socket of the one before is destroyed by then. These
 *          are the two places that confirm messages to the outbox, which gives back what is confirmed and nothing
 *          else: what a full outbox drops, what another publisher leaves behind and what a stop cuts off take their
 *          slabs out of use. A message that is sent again gets the bytes that it has.
 * Source   ai-dynamo/dynamo 1.6.1, NATS event plane (subject and message; the rest is ours).
 */
import type { NatsConnection } from '../connections/nats.ts';
import type { PlaneMetrics } from '../metrics/relay-metrics.ts';
import type { ChannelTransport } from '../protocol/discovery-records.ts';
import type { PlaneMessage } from '../protocol/envelope.ts';
import type { MessageRoom } from '../protocol/message-slab.ts';
import { NatsFrames } from './nats-frames.ts';
import { Outbox } from './outbox.ts';
import type { Plane, PlaneListener } from './plane.ts';

const WINDOW_BYTES = 4 << 20;
const PROBE_BYTES = 256 << 10;
const PROBE_MS = 50;

export interface NatsPlaneOptions {
  readonly subject: string;
  readonly servers: readonly string[];
  readonly outboxBytes: number;
  /** Pause after a reconnect, jittered from half of it to all of it. */
  readonly resumeDelayMs: number;
  /** `strict`: as Dynamo's client, what was handed over once is not sent again. */
  readonly resends: boolean;
  readonly onEvent: PlaneListener;
}

export class NatsPlane implements Plane {
  readonly kind = 'nats';
  readonly channel: ChannelTransport = { kind: 'nats' };
  readonly endpoint: string;
  readonly #options: NatsPlaneOptions;
  readonly #metrics: PlaneMetrics;
  readonly #connection: NatsConnection;
  readonly #frames: NatsFrames;
  #outbox: Outbox;
  #isScheduled = false;
  #isPaused = false;
  /** Number of the message that this link was handed last; -1: none. */
  #lastSequence = -1;
  /** Sent before and to be sent again: they count as resent, not as published. */
  #resendUntil = -1;
  /** Of this link: what was written, and how much of it has arrived. What an outbox drops is still on its way. */
  #writtenBytes = 0;
  #arrivedBytes = 0;
  #unprobedBytes = 0;
  #probeTimer: NodeJS.Timeout | undefined;
  #resumeTimer: NodeJS.Timeout | undefined;
  /** Called whenever something was confirmed, while a stop waits for it. */
  #onConfirmed: (() => void) | null = null;

  constructor(options: NatsPlaneOptions, connection: NatsConnection, metrics: PlaneMetrics) {
    const { onEvent } = options;
    this.#options = options;
    this.#metrics = metrics;
    this.#connection = connection;
    // Where the link has ended in just this moment, what it does not write is unconfirmed and sent again.
    this.#frames = new NatsFrames(options.subject, (frames) => connection.write(frames));
    this.endpoint = `${options.servers.join(',')} ${options.subject}`;
    this.#outbox = new Outbox(options.outboxBytes);
    connection.listen({
      onConnected: (isFirst) => {
        onEvent({ kind: 'connected' });
        if (isFirst) this.#schedule();
        else this.#resumeLater();
      },
      onDisconnected: () => onEvent({ kind: 'disconnected' }),
    });
  }

  get maxMessageBytes(): number {
    return this.#connection.maxPayloadBytes;
  }

  get messageRoom(): MessageRoom {
    return this.#frames.room;
  }

  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  /** The server cuts off a slow subscriber by itself; a publisher does not see it. */
  get hasSlowSubscriber(): boolean {
    return false;
  }

  get outboxBytes(): number {
    return this.#outbox.bytes;
  }

  get outboxMessages(): number {
    return this.#outbox.length;
  }

  get disconnects(): number {
    return this.#connection.disconnects;
  }

  get reconnects(): number {
    return Math.max(0, this.#connection.connects - 1);
  }

  /** The server takes subscribers, or does not. */
  get refusals(): number {
    return 0;
  }

  async start(): Promise<void> {}

  startPublisher(): number {
    const left = this.#outbox.length;
    this.#outbox = new Outbox(this.#options.outboxBytes);
    this.#lastSequence = -1;
    this.#resendUntil = -1;
    return left;
  }

  publish(message: PlaneMessage): void {
    const dropped = this.#outbox.push(message);
    if (dropped > 0) this.#drop('outbox_full', dropped);
    this.#schedule();
  }

  /** Waits at most `drainMs` for the server to confirm everything; a frozen one never would. */
  async stop(drainMs: number): Promise<void> {
    this.#isPaused = false;
    this.#sendAll();
    this.#probe();
    if (this.#outbox.length > 0 && drainMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, drainMs);
        this.#onConfirmed = (): void => {
          if (this.#outbox.length > 0) return;
          clearTimeout(timer);
          resolve();
        };
      });
    }
    clearTimeout(this.#probeTimer);
    clearTimeout(this.#resumeTimer);
    this.#loseOrphans();
  }

  #resumeLater(): void {
    if (!this.#options.resends) this.#outbox.confirm(this.#lastSequence);
    this.#loseOrphans();
    // A second outage may come before all that the first one swallowed has been sent again.
    this.#resendUntil = Math.max(this.#resendUntil, this.#lastSequence);
    this.#outbox.rewind();
    // A probe on this link speaks of what was written on this link.
    this.#lastSequence = -1;
    this.#arrivedBytes = this.#writtenBytes;
    this.#isPaused = true;
    const { resumeDelayMs } = this.#options;
    clearTimeout(this.#resumeTimer);
    this.#resumeTimer = setTimeout(
      () => {
        this.#isPaused = false;
        this.#schedule();
      },
      resumeDelayMs * (0.5 + Math.random() / 2),
    );
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isPaused || !this.isConnected) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendAll();
    });
  }

  get #canSend(): boolean {
    return !this.#isPaused && this.#connection.canWrite;
  }

  #sendAll(): void {
    while (this.#canSend && this.#writtenBytes - this.#arrivedBytes < WINDOW_BYTES) {
      const message = this.#outbox.next();
      if (message === undefined) break;
      const { sequence, envelope } = message;
      // Held from before the server had told its limit, or a lower one.
      if (envelope.length > this.maxMessageBytes) {
        this.#outbox.discard();
        this.#drop('payload_too_large', 1);
        continue;
      }
      this.#frames.add(message);
      if (sequence <= this.#resendUntil) this.#metrics.resentMessages++;
      this.#lastSequence = sequence;
      this.#writtenBytes += envelope.length;
      this.#unprobedBytes += envelope.length;
      if (this.#unprobedBytes >= PROBE_BYTES) this.#probe();
    }
    this.#frames.flush();
    if (this.#unprobedBytes > 0) this.#probeTimer ??= setTimeout(() => this.#probe(), PROBE_MS);
  }

  #probe(): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = undefined;
    this.#unprobedBytes = 0;
    if (!this.isConnected) return;
    this.#frames.flush();
    const sequence = this.#lastSequence;
    const writtenBytes = this.#writtenBytes;
    // Its numbers mean nothing to the outbox of a later publisher.
    const outbox = this.#outbox;
    this.#connection.confirm().then(
      () => {
        outbox.confirm(sequence);
        this.#arrivedBytes = writtenBytes;
        this.#sendAll();
        this.#onConfirmed?.();
      },
      // The link broke first: everything unconfirmed is sent again after the reconnect.
      () => undefined,
    );
  }

  #loseOrphans(): void {
    const lost = this.#outbox.loseOrphans();
    if (lost > 0) this.#drop('outbox_full', lost);
  }

  #drop(reason: 'outbox_full' | 'payload_too_large', messages: number): void {
    this.#metrics.publishFailures[reason] += messages;
    this.#options.onEvent({ kind: 'dropped', reason });
  }
}
