/**
 * NatsConnection: one connection to NATS that is never given up.
 *
 * Retries  from the first attempt on, capped and jittered, also after a refused authorisation.
 * Never    hands a message to a client that is not connected: it would keep it and throw it away.
 * Source   nats 2.29: at each redial the client's own buffer is dropped.
 */
import { readFileSync } from 'node:fs';
import {
  type Authenticator,
  type NatsConnection as Client,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  Events,
  nkeyAuthenticator,
} from 'nats';

export interface NatsOptions {
  readonly servers: readonly string[];
  readonly username: string | null;
  readonly password: string | null;
  readonly token: string | null;
  readonly nkey: string | null;
  readonly credentialsFile: string | null;
  readonly caCertPath: string | null;
  readonly clientCertPath: string | null;
  readonly clientKeyPath: string | null;
  readonly onConnected: () => void;
  readonly onDisconnected: () => void;
  readonly onError: (error: unknown) => void;
}

const ATTEMPT_TIMEOUT_MS = 5000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 4000;

export class NatsConnection {
  readonly #options: NatsOptions;
  #client: Client | null = null;
  #isConnected = false;
  #isStopping = false;
  #wake: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  disconnects = 0;
  /** Connections since the start, the first included. */
  connects = 0;

  constructor(options: NatsOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Largest message the server takes; unbounded until one has said. */
  get maxPayloadBytes(): number {
    return this.#client?.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  /** Begins to connect; the outcome shows in `isConnected` and the call-backs. */
  start(): void {
    this.#running = this.#run();
  }

  /** Hands a message to the connected client. Throws what the client throws. */
  publish(subject: string, message: Uint8Array): void {
    this.#client?.publish(subject, message);
  }

  /** Waits at most `drainMs` for the server to take what it was given, then closes. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopping = true;
    this.#wake?.();
    const client = this.#client;
    if (client !== null) {
      // A frozen server never answers, so the flush alone would not end.
      if (this.#isConnected)
        await Promise.race([client.flush().catch(() => undefined), pause(drainMs)]);
      await client.close();
    }
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
        this.#options.onError(error);
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
    this.#setConnected(true);
    // The status iterator does not end with the client, so nothing waits for it.
    void this.#followStatus(client);
    const error = await client.closed();
    this.#setConnected(false);
    this.#client = null;
    if (error) throw error;
  }

  async #followStatus(client: Client): Promise<void> {
    for await (const { type } of client.status()) {
      if (type === Events.Disconnect) this.#setConnected(false);
      else if (type === Events.Reconnect) this.#setConnected(true);
    }
  }

  #setConnected(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    if (isConnected) this.connects++;
    else this.disconnects++;
    if (isConnected) this.#options.onConnected();
    else this.#options.onDisconnected();
  }

  #clientOptions(): ConnectionOptions {
    const { servers, caCertPath, clientCertPath, clientKeyPath } = this.#options;
    const isTls = servers.some((server) => server.startsWith('tls://'));
    return {
      servers: servers.map((server) => server.replace(/^(nats|tls):\/\//, '')),
      name: 'kvrelay',
      timeout: ATTEMPT_TIMEOUT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: FIRST_WAIT_MS,
      reconnectJitter: FIRST_WAIT_MS,
      ignoreAuthErrorAbort: true,
      pingInterval: 5000,
      maxPingOut: 2,
      ...this.#authentication(),
      ...(isTls && {
        tls: {
          ...(caCertPath !== null && { caFile: caCertPath }),
          ...(clientCertPath !== null && { certFile: clientCertPath }),
          ...(clientKeyPath !== null && { keyFile: clientKeyPath }),
        },
      }),
    };
  }

  /** The first method that is configured, in Dynamo's order. */
  #authentication(): ConnectionOptions {
    const { username, password, token, nkey, credentialsFile } = this.#options;
    if (username !== null) return { user: username, ...(password !== null && { pass: password }) };
    if (token !== null) return { token };
    let authenticator: Authenticator | undefined;
    if (nkey !== null) authenticator = nkeyAuthenticator(new TextEncoder().encode(nkey));
    else if (credentialsFile !== null) {
      authenticator = credsAuthenticator(readFileSync(credentialsFile));
    }
    return authenticator === undefined ? {} : { authenticator };
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
