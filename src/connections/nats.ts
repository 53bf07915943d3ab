/**
 * NatsConnection: one connection to NATS that is never given up, shared by event and request planes.
 *
 * Retries  from the first attempt on, capped and jittered, also after a refused authorisation.
 * Never    writes to a client that is not connected: what it takes then it throws away.
 * Source   nats 2.29: at each redial the client's own buffer is dropped and open flushes are rejected.
 */
import {
  type NatsConnection as Client,
  type ConnectionOptions,
  connect,
  DebugEvents,
  Events,
  type Msg,
  type Subscription,
} from 'nats';
import { endLink, isLinked, writeFrames } from './nats-socket.ts';

export interface NatsListener {
  /** `isFirst` is false for a reconnect, after which nothing unconfirmed can be relied upon. */
  onConnected(isFirst: boolean): void;
  onDisconnected(): void;
}

/** A subject that this process answers requests at. */
export interface NatsResponder {
  /** Resolves once the server has the subscription; false where it was stopped before. */
  readonly isReady: Promise<boolean>;
  stop(): void;
}

interface Responder {
  readonly subject: string;
  readonly reply: (request: Uint8Array) => Uint8Array;
  readonly onReady: (isReady: boolean) => void;
}

export interface NatsConnectionOptions {
  /** Servers, authentication and TLS, as the client takes them. */
  readonly client: ConnectionOptions;
  /** Without a connection for this long after the start, that is said as an error; it goes on trying. */
  readonly startupTimeoutMs: number;
  readonly onError: (error: unknown) => void;
}

const ATTEMPT_TIMEOUT_MS = 5000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 4000;

export class NatsConnection {
  readonly #options: NatsConnectionOptions;
  readonly #listeners: NatsListener[] = [];
  readonly #responders = new Map<Responder, Subscription | null>();
  #client: Client | null = null;
  #isConnected = false;
  #isStopping = false;
  #startupTimer: NodeJS.Timeout | undefined;
  #wake: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  disconnects = 0;
  /** Connections since the start, the first included. */
  connects = 0;

  constructor(options: NatsConnectionOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Largest message the server takes; unbounded until one has said. */
  get maxPayloadBytes(): number {
    return this.#client?.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  listen(listener: NatsListener): void {
    this.#listeners.push(listener);
  }

  /** Begins to connect; the outcome shows in `isConnected` and at the listeners. */
  start(): void {
    this.#running = this.#run();
    const { startupTimeoutMs, onError } = this.#options;
    this.#startupTimer = setTimeout(() => {
      onError(new Error(`no connection within ${startupTimeoutMs / 1000} s, trying on`));
    }, startupTimeoutMs);
  }

  /** Whether `write` would reach a socket now: `isConnected` follows the end of a link a little later. */
  get canWrite(): boolean {
    return this.#isConnected && this.#client !== null && isLinked(this.#client);
  }

  /**
   * Sends messages that lie ready as the protocol has them, in order with all else that is sent here. False, and nothing
   * is done, without a link. The memory must stay as it is until a later `confirm` resolves or a new link stands, by
   * which time the one before has let go of it.
   */
  write(frames: Uint8Array): boolean {
    if (this.#client === null || !this.canWrite) return false;
    writeFrames(this.#client, frames);
    return true;
  }

  /**
   * Answers each request to `subject` at once with what `reply`, which must not throw, returns. Stands
   * through reconnects, and is set up as soon as there is a connection.
   */
  respond(subject: string, reply: Responder['reply']): NatsResponder {
    let onReady: Responder['onReady'] = () => undefined;
    const isReady = new Promise<boolean>((resolve) => {
      onReady = resolve;
    });
    const responder = { subject, reply, onReady };
    this.#responders.set(responder, null);
    if (this.#client !== null) this.#subscribe(this.#client, responder);
    const stop = (): void => {
      this.#responders.get(responder)?.unsubscribe();
      this.#responders.delete(responder);
      onReady(false);
    };
    return { isReady, stop };
  }

  /** Resolves once the server has taken everything before it; rejects where the link breaks first. */
  async confirm(): Promise<void> {
    if (this.#client === null) throw new Error('no connection to NATS');
    await this.#client.flush();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#startupTimer);
    this.#wake?.();
    // An attempt under way ends by itself, in up to ATTEMPT_TIMEOUT_MS; nobody has to wait for it.
    if (this.#client === null) return;
    await this.#client.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    let waitMs = FIRST_WAIT_MS;
    while (!this.#isStopping) {
      try {
        const client = await connect(this.#clientOptions());
        waitMs = FIRST_WAIT_MS;
        await this.#follow(client);
      } catch (error) {
        if (!this.#isStopping) this.#options.onError(error);
      }
      if (this.#isStopping) break;
      await this.#sleep(waitMs * (0.5 + Math.random() / 2));
      waitMs = Math.min(waitMs * 2, MAX_WAIT_MS);
    }
  }

  /** Lives as long as the client, which redials by itself. */
  async #follow(client: Client): Promise<void> {
    this.#client = client;
    if (this.#isStopping) {
      await client.close();
      return;
    }
    for (const responder of this.#responders.keys()) this.#subscribe(client, responder);
    this.#setConnected(true);
    // The status iterator does not end with the client, so nothing waits for it.
    void this.#followStatus(client);
    const error = await client.closed();
    this.#setConnected(false);
    this.#client = null;
    if (error) throw error;
  }

  /** The client keeps a subscription through its own redials, but not beyond its end. */
  #subscribe(client: Client, responder: Responder): void {
    const { subject, reply, onReady } = responder;
    const callback = (error: unknown, message: Msg): void => {
      try {
        if (error !== null) throw error;
        // Throws where the answer is larger than the server takes.
        message.respond(reply(message.data));
      } catch (cause) {
        this.#options.onError(cause);
      }
    };
    try {
      this.#responders.set(responder, client.subscribe(subject, { callback }));
    } catch (error) {
      this.#options.onError(error);
      return;
    }
    // Where the link breaks first, the client subscribes again by itself.
    client.flush().then(
      () => onReady(true),
      () => onReady(true),
    );
  }

  async #followStatus(client: Client): Promise<void> {
    for await (const { type, data } of client.status()) {
      if (type === Events.Disconnect) this.#setConnected(false);
      else if (type === Events.Reconnect) this.#setConnected(true);
      else if (type === DebugEvents.StaleConnection) endLink(client);
      else if (type === Events.Error)
        this.#options.onError(new Error(typeof data === 'string' ? data : type));
    }
  }

  #setConnected(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    clearTimeout(this.#startupTimer);
    if (isConnected) this.connects++;
    else this.disconnects++;
    for (const listener of this.#listeners) {
      if (isConnected) listener.onConnected(this.connects === 1);
      else listener.onDisconnected();
    }
  }

  #clientOptions(): ConnectionOptions {
    return {
      name: 'kvrelay',
      timeout: ATTEMPT_TIMEOUT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: FIRST_WAIT_MS,
      reconnectJitter: FIRST_WAIT_MS,
      ignoreAuthErrorAbort: true,
      // A frozen server answers no ping: the link counts as broken after three.
      pingInterval: 5000,
      maxPingOut: 2,
      ...this.#options.client,
    };
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = (): void => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}
