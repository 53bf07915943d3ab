/** A hop between an engine's event socket and a subscriber that drops live messages by seed. */
import { Publisher, Subscriber } from 'zeromq';
import { Loss } from './loss.ts';

export class LossyHop {
  readonly #subscriber = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  readonly #publisher = new Publisher({ linger: 0, sendHighWaterMark: 0 });
  readonly #loss: Loss;
  #running: Promise<void> = Promise.resolve();

  private constructor(loss: Loss) {
    this.#loss = loss;
  }

  /** `loss` of 0 … 1; equal seeds drop the same messages. */
  static async start(engineEndpoint: string, loss: number, seed: string): Promise<LossyHop> {
    const hop = new LossyHop(new Loss(loss, seed));
    await hop.#publisher.bind('tcp://127.0.0.1:*');
    hop.#subscriber.subscribe();
    const connected = new Promise<void>((resolve) => {
      hop.#subscriber.events.on('handshake', () => resolve());
    });
    hop.#subscriber.connect(engineEndpoint);
    await connected;
    hop.#running = hop.#run();
    return hop;
  }

  get endpoint(): string {
    return this.#publisher.lastEndpoint ?? '';
  }

  /** Messages dropped so far. */
  get dropped(): number {
    return this.#loss.dropped;
  }

  async stop(): Promise<void> {
    this.#subscriber.close();
    await this.#running;
    this.#publisher.close();
  }

  async #run(): Promise<void> {
    for await (const frames of this.#subscriber) {
      if (!this.#loss.takesNext()) await this.#publisher.send(frames);
    }
  }
}
