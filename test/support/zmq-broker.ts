/** A ZMQ broker: an XSUB socket for publishers, an XPUB socket for subscribers, and between them what a test drops. */
import { XPublisher, XSubscriber } from 'zeromq';
import { freePorts } from './free-ports.ts';

export class ZmqBroker {
  /** As routers and relays are given it. */
  readonly url: string;
  /** Which messages of publishers get lost here. */
  drops: (message: readonly Buffer[]) => boolean = () => false;
  readonly #xsub: XSubscriber = new XSubscriber({ linger: 0 });
  readonly #xpub: XPublisher = new XPublisher({ linger: 0 });
  #running: Promise<void> = Promise.resolve();

  private constructor(port: number) {
    this.url = `xsub=tcp://127.0.0.1:${port},xpub=tcp://127.0.0.1:${port + 1}`;
  }

  /** On two adjacent ports: free ones, or those from `port` on. */
  static async start(port?: number): Promise<ZmqBroker> {
    const first = port ?? (await freePorts(2));
    const broker = new ZmqBroker(first);
    await broker.#xsub.bind(`tcp://127.0.0.1:${first}`);
    await broker.#xpub.bind(`tcp://127.0.0.1:${first + 1}`);
    broker.#running = broker.#forward();
    return broker;
  }

  async close(): Promise<void> {
    this.#xsub.close();
    this.#xpub.close();
    await this.#running;
  }

  async #forward(): Promise<void> {
    const keeps = (message: readonly Buffer[]): boolean => !this.drops(message);
    await Promise.all([pass(this.#xsub, this.#xpub, keeps), pass(this.#xpub, this.#xsub)]);
  }
}

async function pass(
  from: XSubscriber | XPublisher,
  to: XSubscriber | XPublisher,
  keeps: (message: readonly Buffer[]) => boolean = () => true,
): Promise<void> {
  try {
    for await (const message of from) if (keeps(message)) await to.send(message);
  } catch (error) {
    // The other side was closed between the two.
    if (!to.closed) throw error;
  }
}
