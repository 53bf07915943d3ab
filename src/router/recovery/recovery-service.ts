/**
 * RecoveryService: where routers ask for what they missed, for all ranks of the process.
 *
 * Opens    a source only once it can be asked: a router asks within milliseconds of an announcement.
 * Plane    TCP, with one listener for all sources, or NATS, with a subscription each; the answer goes over
 *          TCP in both.
 */
import type { NatsConnection, NatsResponder } from '../../connections/nats.ts';
import { assertInvariant } from '../../errors.ts';
import { RecoveryCounts } from '../../metrics/recovery-counts.ts';
import type { Codec } from './query.ts';
import { QueryService, type QueryServiceLimits, type RecoverySource } from './query-service.ts';
import { hostPort, recoveryPath, recoverySubject, type ServedSource } from './recovery-address.ts';
import { MAX_PAYLOAD_BYTES } from './request-frames.ts';
import { RequestServer, type RequestServerLimits } from './request-server.ts';
import type { TcpTls } from './tcp-tls.ts';

/** How routers are told to ask; stands in the record of the source. */
export interface RecoveryAddress {
  /** `<ip>:<port>/<path>`, or a NATS subject. */
  readonly transport: { readonly tcp: string } | { readonly nats_tcp: string };
  readonly codec: Codec;
}

/** What a rank's queries are answered from. */
export type ServedRank = Omit<RecoverySource, 'workerId' | 'dpRank'>;

export interface RecoveryServiceOptions {
  readonly requestPlane: 'tcp' | 'nats';
  readonly codec: Codec;
  /** Literal address for routers; null: the listener is on loopback, for routers of this host alone. */
  readonly advertisedHost: string | null;
  /** Of the TCP plane; 0 = a free one. */
  readonly port: number;
  /** Null on the TCP plane. */
  readonly nats: NatsConnection | null;
  /** Null where a rank has no index: its source is then live-only. */
  readonly rank: (dpRank: number) => ServedRank | null;
  readonly onError: (error: unknown) => void;
  /** Absent: neither way has TLS. */
  readonly tls?: TcpTls;
  readonly limits?: Partial<RequestServerLimits & Pick<QueryServiceLimits, 'maxAnswers'>>;
}

const LOOPBACK = '127.0.0.1';

export class RecoveryService {
  readonly counts: RecoveryCounts = new RecoveryCounts();
  readonly #options: RecoveryServiceOptions;
  readonly #queries: QueryService;
  readonly #server: RequestServer | null;
  readonly #responders = new Map<string, NatsResponder>();
  #port = 0;

  constructor(options: RecoveryServiceOptions) {
    const { requestPlane, advertisedHost, port, onError } = options;
    this.#options = options;
    const { maxAnswers, ...limits } = options.limits ?? {};
    this.#queries = new QueryService(this.counts, onError, {
      ...(maxAnswers !== undefined && { maxAnswers }),
      tls: options.tls?.answers ?? null,
    });
    const listening = {
      host: listenHost(advertisedHost),
      port,
      accept: this.#queries.accept.bind(this.#queries),
      counts: this.counts,
      onError,
      limits,
      tls: options.tls?.listener ?? null,
    };
    this.#server = requestPlane === 'tcp' ? new RequestServer(listening) : null;
  }

  get requestPlane(): 'tcp' | 'nats' {
    return this.#options.requestPlane;
  }

  /** What listens for queries; null on the NATS plane and before the start. */
  get endpoint(): string | null {
    return this.#port === 0 ? null : hostPort(this.#advertisedHost, this.#port);
  }

  /** Routers on other hosts cannot reach it. */
  get isOnLoopback(): boolean {
    return this.#server !== null && isLoopback(this.#advertisedHost);
  }

  /** Throws RecoveryListenError. */
  async start(): Promise<void> {
    if (this.#server !== null) this.#port = await this.#server.start();
  }

  /** How `source` can be asked from now on; null where it cannot, or was closed meanwhile. */
  async open(source: ServedSource): Promise<RecoveryAddress | null> {
    const { workerId, dpRank } = source;
    const rank = this.#options.rank(dpRank);
    if (rank === null) return null;
    const name = this.#nameOf(source);
    this.#queries.add(name, { ...rank, workerId, dpRank });
    const { codec } = this.#options;
    if (this.#server !== null) {
      return { transport: { tcp: `${this.endpoint}/${name}` }, codec };
    }
    const isReady = await this.#respond(name);
    return isReady ? { transport: { nats_tcp: name }, codec } : null;
  }

  async close(source: ServedSource): Promise<void> {
    const name = this.#nameOf(source);
    this.#queries.remove(name);
    this.#responders.get(name)?.stop();
    this.#responders.delete(name);
  }

  async stop(): Promise<void> {
    for (const responder of this.#responders.values()) responder.stop();
    this.#responders.clear();
    await this.#server?.stop();
    this.#queries.stop();
  }

  get #advertisedHost(): string {
    return this.#options.advertisedHost ?? LOOPBACK;
  }

  #nameOf(source: ServedSource): string {
    return this.#server === null ? recoverySubject(source) : recoveryPath(source);
  }

  #respond(subject: string): Promise<boolean> {
    const { nats } = this.#options;
    assertInvariant(nats !== null, 'the NATS request plane has no connection');
    this.#responders.get(subject)?.stop();
    const responder = nats.respond(subject, (request) => {
      // Larger than any query: not worth a look.
      const payload = Buffer.from(request.subarray(0, MAX_PAYLOAD_BYTES + 1));
      return Buffer.from(this.#queries.accept({ path: subject, payload }));
    });
    this.#responders.set(subject, responder);
    return responder.isReady;
  }
}

/** Reachable under an address of the host's choice, a listener has to be on all of them. */
function listenHost(advertisedHost: string | null): string {
  if (advertisedHost === null) return LOOPBACK;
  if (isLoopback(advertisedHost)) return advertisedHost;
  return advertisedHost.includes(':') ? '::' : '0.0.0.0';
}

function isLoopback(host: string): boolean {
  return host === '::1' || host.startsWith('127.');
}
