/** Planes of the relay that share a connection to a real server, and a plain subscriber of all they send. */
import { type NatsConnection as Client, type ConnectionOptions, connect } from 'nats';
import { onTestFinished } from 'vitest';
import { NatsConnection } from '../../src/connections/nats.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { EnvelopeEncoder, type PlaneMessage } from '../../src/protocol/envelope.ts';
import { NatsPlane } from '../../src/sinks/nats.ts';
import { eventually } from './plane-collector.ts';
import { removedBatch } from './removed-batch.ts';

/** Of about 100 bytes to 180 kB; the largest has memory of its own. */
const BATCHES = [1, 40, 900, 3300, 20_000, 60_000].map(removedBatch);

export interface PlaneOptions {
  readonly subject: string;
  readonly outboxBytes?: number;
  readonly resends?: boolean;
  readonly resumeDelayMs?: number;
}

/** One plane and what it was given. */
export class PlaneTrial {
  readonly plane: NatsPlane;
  readonly metrics: RelayMetrics = new RelayMetrics();
  readonly subject: string;
  /** Copies of all envelopes, by their numbers; another publisher's follow on. */
  readonly published: Buffer[] = [];
  #envelopes: EnvelopeEncoder;

  constructor(options: PlaneOptions, connection: NatsConnection) {
    const { subject, outboxBytes = 1 << 26, resends = true, resumeDelayMs = 50 } = options;
    const onEvent = (): void => undefined;
    const rest = { servers: [], resumeDelayMs, outboxBytes, resends, onEvent };
    this.subject = subject;
    this.plane = new NatsPlane({ subject, ...rest }, connection, this.metrics);
    this.#envelopes = new EnvelopeEncoder(1, 0, this.plane.messageRoom);
  }

  /** Messages of all sizes, alone, joined, and without memory that is shared, until they have `bytes`. */
  publish(bytes: number): void {
    for (let left = bytes, round = 0; left > 0; round++) {
      for (const message of this.#messages(round)) {
        this.published.push(Buffer.from(message.envelope));
        left -= message.envelope.length;
        this.plane.publish(message);
      }
    }
  }

  *#messages(round: number): Iterable<PlaneMessage> {
    for (const [index, batch] of BATCHES.entries()) {
      if (round % 4 < index - 2) continue;
      yield this.#envelopes.encode(batch, 0, 1, round);
      if (index > 2) continue;
      for (let joined = 0; joined <= round % 3; joined++) this.#envelopes.append(batch, 1e6);
      const joined = this.#envelopes.close(round);
      if (round % 7 > 0) yield joined;
      else yield { ...joined, envelope: Buffer.from(joined.envelope), slab: null };
    }
  }

  /** As where a worker is succeeded by another: what the outbox still has goes. */
  succeed(): void {
    this.plane.startPublisher();
    this.#envelopes = new EnvelopeEncoder(2, this.published.length, this.plane.messageRoom);
  }

  async isConfirmed(): Promise<void> {
    if (await eventually(() => this.plane.outboxMessages === 0, 20_000)) return;
    throw new Error(`${this.plane.outboxMessages} messages are not confirmed`);
  }
}

/** What a plain client gets. */
export class PlainSubscriber {
  readonly #client: Client;
  readonly #received = new Map<string, Buffer[]>();

  private constructor(client: Client) {
    this.#client = client;
    client.subscribe('>', {
      callback: (_error, { subject, data, headers, reply }) => {
        if (headers !== undefined || reply) throw new Error('more than a message');
        const before = this.#received.get(subject) ?? [];
        this.#received.set(subject, before);
        before.push(Buffer.from(data));
      },
    });
  }

  static async start(options: ConnectionOptions): Promise<PlainSubscriber> {
    const reconnect = { maxReconnectAttempts: -1, reconnectTimeWait: 10, reconnectJitter: 5 };
    const client = await connect({ ...reconnect, ...options });
    onTestFinished(() => client.close());
    const subscriber = new PlainSubscriber(client);
    await client.flush();
    return subscriber;
  }

  on(subject: string): readonly Buffer[] {
    return this.#received.get(subject) ?? [];
  }

  /** All that the server has taken before has come when it resolves. */
  async settle(): Promise<void> {
    await this.#client.flush();
  }
}

/** A connection that ends with the test, and planes on it, once it stands. */
export async function startPlanes(
  client: ConnectionOptions,
  ...options: PlaneOptions[]
): Promise<{ connection: NatsConnection; trials: PlaneTrial[] }> {
  const onError = (): void => undefined;
  const connection = new NatsConnection({ client, startupTimeoutMs: 60_000, onError });
  const trials = options.map((one) => new PlaneTrial(one, connection));
  connection.start();
  onTestFinished(async () => {
    for (const { plane } of trials) await plane.stop(0);
    await connection.stop();
  });
  if (!(await eventually(() => connection.isConnected))) throw new Error('not connected');
  return { connection, trials };
}
