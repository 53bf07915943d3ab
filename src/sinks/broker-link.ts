/**
 * BrokerLink: whether a publisher that is connected to brokers may send.
 *
 * What is sent before a broker's subscriptions have arrived is for nobody, so a new link has SUBSCRIBE_MS before it
 * counts.
 */

/** Time that a broker's subscriptions take at most to arrive after the handshake. */
const SUBSCRIBE_MS = 200;

export interface BrokerLinkOptions {
  readonly onChange: (isConnected: boolean) => void;
  /** Called once messages may leave. */
  readonly onLinked: () => void;
}

export class BrokerLink {
  readonly #options: BrokerLinkOptions;
  #timer: NodeJS.Timeout | undefined;
  #isConnected = false;
  #isLinked = false;

  constructor(options: BrokerLinkOptions) {
    this.#options = options;
  }

  /** At least one broker has completed its handshake. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  get isLinked(): boolean {
    return this.#isLinked;
  }

  takePeers(peers: number): void {
    if (this.#isConnected === peers > 0) return;
    this.stop();
    this.#isConnected = peers > 0;
    this.#options.onChange(this.#isConnected);
    if (!this.#isConnected) return;
    this.#timer = setTimeout(() => {
      this.#isLinked = true;
      this.#options.onLinked();
    }, SUBSCRIBE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#isLinked = false;
  }
}
