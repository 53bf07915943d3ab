/** Collects what a relay publishes, from NATS or from the ZMQ plane, as raw bytes. */
import { connect, type NatsConnection } from 'nats';
import { Subscriber } from 'zeromq';
import { decodeEnvelope, type PublishedMessage } from './scenarios.ts';

/** Waits until `condition` holds; false when it did not within `timeoutMs`. */
export async function eventually(condition: () => boolean, timeoutMs = 10_000): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadlineMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return true;
}

export interface CollectedMessage extends PublishedMessage {
  readonly envelope: Uint8Array;
}

/** Every message of every subject, in order of arrival. */
export class NatsCollector {
  readonly #connection: NatsConnection;
  readonly #messages = new Map<string, CollectedMessage[]>();

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
    connection.subscribe('namespace.>', {
      callback: (_error, { subject, data, headers, reply }) => {
        if (headers !== undefined || reply)
          throw new Error(`${subject}: headers or a reply subject`);
        const message = { ...decodeEnvelope(data), envelope: data };
        this.#messages.set(subject, [...this.on(subject), message]);
      },
    });
  }

  static async connect(url: string): Promise<NatsCollector> {
    const collector = new NatsCollector(await connect({ servers: url }));
    await collector.#connection.flush();
    return collector;
  }

  on(subject: string): readonly CollectedMessage[] {
    return this.#messages.get(subject) ?? [];
  }

  /** Everything that the server had taken before this call has arrived when it resolves. */
  async settle(): Promise<void> {
    await this.#connection.flush();
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** The raw frames of one brokerless publisher. */
export class ZmqCollector {
  readonly frames: Buffer[][] = [];
  readonly #socket: Subscriber = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  readonly #reading: Promise<void>;
  #isHandshaken = false;

  constructor(endpoint: string) {
    this.#socket.events.on('handshake', () => {
      this.#isHandshaken = true;
    });
    this.#socket.subscribe();
    this.#socket.connect(endpoint);
    this.#reading = this.#read();
  }

  /** The subscription follows the handshake at once; a little time lets it arrive. */
  async subscribed(): Promise<void> {
    await eventually(() => this.#isHandshaken);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  get published(): PublishedMessage[] {
    return this.frames.map((frames) => decodeEnvelope((frames[3] as Buffer).subarray(5)));
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    for await (const frames of this.#socket) this.frames.push(frames);
  }
}
