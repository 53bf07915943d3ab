/** What stands around the relay of bench/join-time.mjs: an engine, and a broker of the ZMQ plane. */
import { XPublisher, XSubscriber } from 'zeromq';
import { BatchWriter } from './batch-writer.mjs';
import { seeded } from './seeded.mjs';

export const BLOCK_SIZE = 16;
export const CHAIN_BLOCKS = 100;
/** A message with a chain has more; heartbeats are smaller. */
const CHAIN_MESSAGE_BYTES = 1000;

/** Passes messages on, but for one that is to be lost. */
export class LossyBroker {
  #xsub = new XSubscriber({ linger: 0 });
  #xpub = new XPublisher({ linger: 0, sendHighWaterMark: 0 });
  #onLost = null;

  async start() {
    await this.#xsub.bind('tcp://127.0.0.1:0');
    await this.#xpub.bind('tcp://127.0.0.1:0');
    void this.#pass(this.#xsub, this.#xpub);
    void this.#pass(this.#xpub, this.#xsub);
    return `xsub=${this.#xsub.lastEndpoint},xpub=${this.#xpub.lastEndpoint}`;
  }

  /** Resolves when the next message with a chain has been lost. */
  loseOne() {
    return new Promise((settle) => {
      this.#onLost = settle;
    });
  }

  stop() {
    this.#xsub.close();
    this.#xpub.close();
  }

  async #pass(from, to) {
    for await (const frames of from) {
      const isChain = (frames[3]?.length ?? 0) > CHAIN_MESSAGE_BYTES;
      if (this.#onLost === null || !isChain) await to.send(frames);
      else {
        this.#onLost();
        this.#onLost = null;
      }
    }
  }
}

/** An engine that stores chains of blocks that nothing else has. */
export class ChainEngine {
  #socket = new XPublisher({ linger: 0, sendHighWaterMark: 0 });
  #writer = new BatchWriter();
  #random = seeded(1);

  async start() {
    await this.#socket.bind('tcp://127.0.0.1:0');
    return this.#socket.lastEndpoint;
  }

  async subscribed() {
    await this.#socket.receive();
  }

  stop() {
    this.#socket.close();
  }

  /** Resolves with its tokens. */
  async storeChain(blocks = CHAIN_BLOCKS) {
    const hashes = Array.from({ length: blocks }, () => ({
      high: this.#random(),
      low: this.#random(),
    }));
    const tokens = Array.from({ length: blocks * BLOCK_SIZE }, () => this.#random() % 150_000);
    this.#writer.start(1);
    this.#writer.stored(hashes, null, tokens, BLOCK_SIZE);
    await this.#socket.send(this.#writer.finish());
    return tokens;
  }
}
