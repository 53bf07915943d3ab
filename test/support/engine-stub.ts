/** An engine's event socket: publishes raw frames, and waits until somebody is subscribed. */
import { XPublisher } from 'zeromq';

export class EngineStub {
  readonly #socket: XPublisher;
  #subscribed: Promise<unknown> = Promise.resolve();

  private constructor(ipv6 = false) {
    this.#socket = new XPublisher({ linger: 2000, sendHighWaterMark: 0, ipv6 });
  }

  /** Binds to a free port, or to the endpoint given. */
  static async start(
    endpoint = 'tcp://127.0.0.1:0',
    options: { ipv6?: boolean } = {},
  ): Promise<EngineStub> {
    const stub = new EngineStub(options.ipv6);
    await stub.#socket.bind(endpoint);
    stub.#subscribed = stub.#socket.receive();
    return stub;
  }

  /** An engine that connects to a bound subscriber. */
  static connect(endpoint: string): EngineStub {
    const stub = new EngineStub();
    stub.#socket.connect(endpoint);
    stub.#subscribed = stub.#socket.receive();
    return stub;
  }

  get endpoint(): string {
    return this.#socket.lastEndpoint ?? '';
  }

  /** Resolves with the first subscription. */
  async subscribed(): Promise<void> {
    await this.#subscribed;
  }

  async send(frames: readonly Uint8Array[]): Promise<void> {
    await this.#socket.send(frames.map((frame) => Buffer.from(frame)));
  }

  close(): void {
    this.#subscribed.catch(() => undefined);
    this.#socket.close();
  }
}
