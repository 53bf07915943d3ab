/**
 * Worker: one kvrelay process beside one inference worker.
 *
 * Builds   listener → engine adapter → relay, and the HTTP server over all of it.
 * Start    HTTP, plane, engine socket: nothing is read before it can be shown and sent.
 * Stop     engine socket, pipeline, plane, HTTP; what arrived before the stop still leaves.
 */
import { randomBytes } from 'node:crypto';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { maskedSettings } from './config/masked-settings.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import { NatsConnection } from './connections/nats.ts';
import { natsClientOptions } from './connections/nats-access.ts';
import { EngineSource } from './engine-source.ts';
import { messageOf } from './errors.ts';
import { createWarner, type Logger, type Warner } from './log.ts';
import type { MetricsSource } from './metrics/metrics-source.ts';
import { createRegistry } from './metrics/registry.ts';
import { Relay } from './relay.ts';
import { indexedRank } from './relay-index.ts';
import { planeReading, planeStatus, rankStatus } from './relay-status.ts';
import { StatusServer } from './status/http-server.ts';
import type { IndexedRank, IndexSource } from './status/index-source.ts';
import type {
  Readiness,
  StatusSnapshot,
  StatusSource,
  WorkerState,
} from './status/status-source.ts';
import { VERSION } from './version.ts';

export interface Worker extends StatusSource {
  start(): Promise<void>;
  /** Safe during and after a failed `start()`; a second call waits for the first. */
  stop(): Promise<void>;
  /** Null with `--http off`, and before the start. */
  readonly httpUrl: string | null;
}

export interface WorkerDeps {
  readonly logger: Logger;
}

export function createWorker(config: WorkerConfig, deps: WorkerDeps): Worker {
  return new RelayWorker(config, deps.logger);
}

/** The event loop is taken for stuck when its clock has not ticked for this long. */
const STUCK_MS = 10_000;
const TICK_MS = 1000;

/** Share of the shutdown time that goes to messages already in the engine socket. */
const LISTENER_STOP_SHARE = 0.25;

class RelayWorker implements Worker, IndexSource {
  readonly #config: WorkerConfig;
  readonly #warner: Warner;
  /** One a rank, first rank first. */
  readonly #relays: readonly Relay[];
  readonly #sources: readonly EngineSource[];
  /** One for all ranks; null on the other planes. */
  readonly #nats: NatsConnection | null;
  readonly #server: StatusServer | null;
  readonly #loopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: 10 });
  readonly #startedAt = new Date();
  #lastTickMs = performance.now();
  #ticker: NodeJS.Timeout | undefined;
  #wasReady = false;
  #stopping: Promise<void> | null = null;
  httpUrl: string | null = null;

  constructor(config: WorkerConfig, logger: Logger) {
    this.#config = config;
    this.#warner = createWarner(logger);
    const { dpRank, dpSize, eventPlane, engineSockets } = config;
    this.#nats = eventPlane === 'nats' ? createNats(config, this.#warner) : null;
    const shared = { config, warner: this.#warner, nats: this.#nats };
    this.#relays = Array.from({ length: dpSize }, (_, offset) => {
      const rank = dpRank + offset;
      const onPlaneChange = (isConnected: boolean): void =>
        logger.info({ plane: eventPlane, dpRank: rank, isConnected }, 'event plane');
      const publisherId = randomPublisherId();
      return new Relay({ ...shared, dpRank: rank, publisherId, onPlaneChange });
    });
    const groups = engineSockets === 'shared' ? [this.#relays] : this.#relays.map((one) => [one]);
    this.#sources = groups.map(
      (relays) => new EngineSource({ config, relays, logger, warner: this.#warner }),
    );
    this.#server = this.#createServer();
  }

  async start(): Promise<void> {
    this.#loopDelay.enable();
    this.#ticker = setInterval(() => {
      this.#lastTickMs = performance.now();
    }, TICK_MS);
    if (this.#server !== null) this.httpUrl = (await this.#server.start()).url;
    if (this.#stopping === null) this.#nats?.start();
    for (const relay of this.#relays) if (this.#stopping === null) await relay.start();
    for (const { listener } of this.#sources) if (this.#stopping === null) await listener.start();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  live(): boolean {
    return performance.now() - this.#lastTickMs < STUCK_MS;
  }

  ready(): Readiness {
    const waitingFor: string[] = [];
    if (this.#stopping !== null) waitingFor.push('the shutdown has begun');
    if (!this.#wasReady) {
      for (const { listener } of this.#sources) {
        if (!listener.wasConnected) waitingFor.push(`the engine at ${listener.endpoint}`);
      }
      for (const { plane, planeWasConnected } of this.#relays) {
        if (!planeWasConnected) waitingFor.push(`the ${plane.kind} plane`);
      }
      this.#wasReady = waitingFor.length === 0;
    }
    return { ready: waitingFor.length === 0, waitingFor: [...new Set(waitingFor)] };
  }

  status(): StatusSnapshot {
    const ranks = this.#ranks((relay, { listener }) => rankStatus(relay, listener, this.#config));
    return {
      version: VERSION,
      started_at: this.#startedAt.toISOString(),
      uptime_s: Math.round((Date.now() - this.#startedAt.getTime()) / 1000),
      compat: this.#config.compat,
      state: this.#state(ranks.some(({ degraded }) => degraded.length > 0)),
      settings: maskedSettings(this.#config),
      plane: planeStatus(this.#relays),
      ranks,
      sources: [],
    };
  }

  indexedRanks(): readonly IndexedRank[] {
    return this.#relays.flatMap((relay) => indexedRank(relay, this.#config) ?? []);
  }

  #ranks<Row>(toRow: (relay: Relay, source: EngineSource) => Row): Row[] {
    return this.#sources.flatMap((source) => source.relays.map((relay) => toRow(relay, source)));
  }

  #createServer(): StatusServer | null {
    const { http } = this.#config;
    if (http === null) return null;
    return new StatusServer({
      host: http.host,
      port: http.port,
      status: this,
      index: this,
      metrics: createRegistry(this.#metricsSource()),
      warner: this.#warner,
    });
  }

  #metricsSource(): MetricsSource {
    const { namespace, component, workerId } = this.#config;
    return {
      version: VERSION,
      labels: { namespace, component, workerIdHex: workerId.toString(16) },
      relays: () =>
        this.#ranks((relay, { listener }) => ({
          dpRank: relay.dpRank,
          metrics: relay.metrics,
          engineConnected: listener.isConnected,
          degraded: relay.degraded(listener.isConnected),
        })),
      plane: () => planeReading(this.#relays),
      eventLoopLagSeconds: () => this.#takeLoopLagSeconds(),
    };
  }

  /** Longest hold of the event loop since the last scrape. */
  #takeLoopLagSeconds(): number {
    const lagNs = this.#loopDelay.max;
    this.#loopDelay.reset();
    return lagNs / 1e9;
  }

  async #stop(): Promise<void> {
    const { shutdownTimeoutMs } = this.#config;
    const deadlineMs = performance.now() + shutdownTimeoutMs;
    const listenerMs = shutdownTimeoutMs * LISTENER_STOP_SHARE;
    await Promise.all(this.#sources.map(({ listener }) => listener.stop(listenerMs)));
    const drainMs = Math.max(0, deadlineMs - performance.now());
    await Promise.all(this.#relays.map((relay) => relay.stop(drainMs)));
    await this.#nats?.stop();
    await this.#server?.stop();
    clearInterval(this.#ticker);
    this.#loopDelay.disable();
    this.#warner.flush();
  }

  #state(isDegraded: boolean): WorkerState {
    if (this.#stopping !== null) return 'stopping';
    if (!this.ready().ready) return 'starting';
    return isDegraded ? 'degraded' : 'ready';
  }
}

function createNats(config: WorkerConfig, warner: Pick<Warner, 'warn'>): NatsConnection {
  return new NatsConnection({
    client: natsClientOptions(config.natsServer, config),
    startupTimeoutMs: config.natsStartupConnectTimeoutSeconds * 1000,
    onError: (error) =>
      warner.warn('plane_error', { reason: messageOf(error) }, 'NATS cannot be reached'),
  });
}

/** Random, 1 … 2^53 − 1: routers read it from JSON. */
function randomPublisherId(): number {
  return Number(BigInt.asUintN(53, randomBytes(8).readBigUInt64BE())) || 1;
}
