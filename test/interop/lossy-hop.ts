/** A hop between an engine's event socket and a subscriber that drops live messages by seed. */
import { Publisher, Subscriber } from 'zeromq';

export class LossyHop {
  /** Messages dropped so far. */
  dropped = 0;
  readonly #subscriber = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  readonly #publisher = new Publisher({ linger: 0, sendHighWaterMark: 0 });
  readonly #loss: number;
  readonly #random: () => number;
  #running: Promise<void> = Promise.resolve();

  private constructor(loss: number, seed: string) {
    this.#loss = loss;
    this.#random = seeded(seed);
  }

  /** `loss` of 0 … 1; equal seeds drop the same messages. */
  static async start(engineEndpoint: string, loss: number, seed: string): Promise<LossyHop> {
    const hop = new LossyHop(loss, seed);
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

  async stop(): Promise<void> {
    this.#subscriber.close();
    await this.#running;
    this.#publisher.close();
  }

  async #run(): Promise<void> {
    for await (const frames of this.#subscriber) {
      if (this.#random() < this.#loss) this.dropped++;
      else await this.#publisher.send(frames);
    }
  }
}

/** Numbers from 0 to 1, the same ones for the same seed. */
function seeded(seed: string): () => number {
  let state = Buffer.from(seed).reduce((sum, byte) => (sum * 31 + byte) >>> 0, 1);
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
