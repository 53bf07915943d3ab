/**
 * NatsPlane: core NATS, one subject.
 *
 * Subject  namespace.<ns>.component.<c>.endpoint.<e>.kv-events, each name with bytes outside
 *          [A-Za-z0-9_-] as %XX; no headers, no reply.
 * Sends    once a turn of the event loop: a write for each message costs more than the message.
 * Down     messages wait in the outbox, bounded; the oldest go first, counted.
 * Source   ai-dynamo/dynamo 1.6.1, NATS event plane.
 */
import { NatsConnection, type NatsOptions } from '../connections/nats.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { KV_EVENTS_TOPIC, type PlaneMessage } from '../protocol/envelope.ts';
import { Outbox } from './outbox.ts';
import type { Plane, PlaneListener } from './plane.ts';

export interface NatsPlaneOptions
  extends Omit<NatsOptions, 'onConnected' | 'onDisconnected' | 'onError'> {
  readonly subject: string;
  readonly outboxBytes: number;
  readonly onEvent: PlaneListener;
}

/** One segment of a subject. */
function subjectSegment(name: string): string {
  return Buffer.from(name, 'utf8')
    .toString('latin1')
    .replace(/[^A-Za-z0-9_-]/g, (byte) => {
      const code = byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
      return `%${code}`;
    });
}

export function kvEventsSubject(namespace: string, component: string, endpoint: string): string {
  const names = [namespace, component, endpoint].map(subjectSegment);
  return `namespace.${names[0]}.component.${names[1]}.endpoint.${names[2]}.${KV_EVENTS_TOPIC}`;
}

export class NatsPlane implements Plane {
  readonly kind = 'nats';
  readonly endpoint: string;
  readonly #options: NatsPlaneOptions;
  readonly #metrics: RelayMetrics;
  readonly #connection: NatsConnection;
  readonly #outbox: Outbox;
  #isScheduled = false;

  constructor(options: NatsPlaneOptions, metrics: RelayMetrics) {
    const { onEvent } = options;
    this.#options = options;
    this.#metrics = metrics;
    this.endpoint = `${options.servers.join(',')} ${options.subject}`;
    this.#outbox = new Outbox(options.outboxBytes);
    this.#connection = new NatsConnection({
      ...options,
      onConnected: () => {
        onEvent({ kind: 'connected' });
        this.#schedule();
      },
      onDisconnected: () => onEvent({ kind: 'disconnected' }),
      onError: (error) => onEvent({ kind: 'error', error }),
    });
  }

  get maxMessageBytes(): number {
    return this.#connection.maxPayloadBytes;
  }

  get isConnected(): boolean {
    return this.#connection.isConnected;
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

  async start(): Promise<void> {
    this.#connection.start();
  }

  publish(message: PlaneMessage): void {
    const dropped = this.#outbox.push(message);
    if (dropped > 0) this.#drop('outbox_full', dropped);
    this.#schedule();
  }

  async stop(drainMs: number): Promise<void> {
    this.#sendAll();
    await this.#connection.stop(drainMs);
  }

  #schedule(): void {
    if (this.#isScheduled || !this.isConnected) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    while (this.isConnected) {
      const message = this.#outbox.shift();
      if (message === undefined) return;
      // Held from before the server had told its limit.
      if (message.envelope.length > this.maxMessageBytes) {
        this.#drop('payload_too_large', 1);
        continue;
      }
      try {
        this.#connection.publish(this.#options.subject, message.envelope);
      } catch (error) {
        this.#drop('client', 1);
        this.#options.onEvent({ kind: 'error', error });
      }
    }
  }

  #drop(reason: 'outbox_full' | 'payload_too_large' | 'client', messages: number): void {
    this.#metrics.publishFailures[reason] += messages;
    this.#options.onEvent({ kind: 'dropped', reason });
  }
}
