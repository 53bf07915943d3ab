/**
 * Worker: one kvrelay process beside one inference worker.
 *
 * Builds   listener → engine adapter → relay, and the HTTP server over all of it.
 * Start    HTTP, plane, recovery, discovery, engine socket: nothing is read before it can be shown and sent.
 * Stop     engine socket, pipeline, plane and discovery, recovery, HTTP; what arrived before the stop still leaves.
 */
import { maskedSettings } from './config/masked-settings.ts';
import { usesNats } from './config/recovery-settings.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { createPresence } from './discovery.ts';
import { EngineSource } from './engine-source.ts';
import { EventLoopLag } from './event-loop-lag.ts';
import { createNats } from './event-plane.ts';
import { createLmcacheSource, type LmcacheSource } from './lmcache-source.ts';
import { createWarner, type Logger, type Warner } from './log.ts';
import { DiscoveryMetrics } from './metrics/discovery-metrics.ts';
import { createRegistry } from './metrics/registry.ts';
import { createRecovery } from './recovery.ts';
import { Relay } from './relay.ts';
import { indexedRank } from './relay-index.ts';
import { planeStatus, rankStatus, recoveryStatus } from './relay-status.ts';
import type { Presence } from './router/presence.ts';
import type { RecoveryService } from './router/recovery/recovery-service.ts';
import { sourcesStatus } from './sources-status.ts';
import { StatusServer } from './status/http-server.ts';
import type { IndexedRank, IndexSource } from './status/index-source.ts';
import type { ObjectListing, ObjectSource } from './status/object-source.ts';
import type { Readiness, StatusSnapshot, StatusSource } from './status/status-source.ts';
import { objectListing } from './stores-status.ts';
import { VERSION } from './version.ts';
import { createWorkerLoad, type WorkerLoad } from './worker-load.ts';
import { workerMetrics } from './worker-metrics.ts';
import { createWorkerStores, type WorkerStores } from './worker-stores.ts';

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

/** Share of the shutdown time that goes to messages already in the engine socket. */
const LISTENER_STOP_SHARE = 0.25;
/** Most time that withdrawing takes; what then still stands expires. */
const WITHDRAW_MS = 1000;

class RelayWorker implements Worker, IndexSource, ObjectSource {
  readonly #config: WorkerConfig;
  readonly #warner: Warner;
  /** One a rank, first rank first; none where stores alone are followed. */
  readonly #relays: readonly Relay[];
  readonly #sources: readonly EngineSource[];
  /** One for all ranks, for events and queries; null where neither uses it. */
  readonly #nats: NatsConnection | null;
  /** Null where no load is published. */
  readonly #load: WorkerLoad | null;
  readonly #stores: WorkerStores | null;
  readonly #lmcache: LmcacheSource | null;
  readonly #discoveryMetrics = new DiscoveryMetrics();
  readonly #presence: Presence;
  /** Null where routers cannot ask. */
  readonly #recovery: RecoveryService | null;
  readonly #server: StatusServer | null;
  readonly #loopLag = new EventLoopLag();
  readonly #startedAt = new Date();
  #wasReady = false;
  #stopping: Promise<void> | null = null;
  httpUrl: string | null = null;

  constructor(config: WorkerConfig, logger: Logger) {
    this.#config = config;
    this.#warner = createWarner(logger);
    const { dpRank, dpSize, eventPlane, engineSockets } = config;
    this.#nats = usesNats(config) ? createNats(config, this.#warner) : null;
    const shared = { config, warner: this.#warner, nats: this.#nats };
    this.#stores = createWorkerStores({ ...shared, logger });
    this.#relays = Array.from({ length: config.engine === 'none' ? 0 : dpSize }, (_, offset) => {
      const rank = dpRank + offset;
      const onResync = (): void => this.#announceAnew(rank);
      const onPlaneChange = (isConnected: boolean): void =>
        logger.info({ plane: eventPlane, dpRank: rank, isConnected }, 'event plane');
      const isRecoverable = (): boolean =>
        this.#stopping === null && this.#presence.isRecoverable(rank);
      const own = { dpRank: rank, placements: this.#stores?.placementsOf(rank) };
      return new Relay({ ...shared, ...own, onPlaneChange, onResync, isRecoverable });
    });
    const groups = engineSockets === 'shared' ? [this.#relays] : this.#relays.map((one) => [one]);
    const engine = { config, logger, warner: this.#warner };
    this.#sources = groups
      .filter(({ length }) => length > 0)
      .map((relays) => new EngineSource({ ...engine, relays }));
    this.#load = createWorkerLoad(shared);
    this.#lmcache = createLmcacheSource({ ...engine, chunks: this.#stores?.chunks ?? null });
    this.#recovery = createRecovery(this.#relays, shared);
    this.#presence = createPresence(config, this.#relays, {
      recovery: this.#recovery,
      load: this.#load,
      metrics: this.#discoveryMetrics,
      warner: this.#warner,
      onWorker: (workerId) => {
        logger.info({ workerId }, 'worker');
        this.#load?.takeWorker(workerId);
      },
    });
    this.#server = this.#createServer();
  }

  async start(): Promise<void> {
    this.#loopLag.start();
    if (this.#server !== null) this.httpUrl = (await this.#server.start()).url;
    if (this.#stopping === null) this.#nats?.start();
    for (const relay of this.#relays) if (this.#stopping === null) await relay.start();
    if (this.#stopping === null) await this.#load?.start();
    if (this.#stopping === null) await this.#recovery?.start();
    if (this.#stopping === null) await this.#presence.start();
    for (const { listener } of this.#sources) if (this.#stopping === null) await listener.start();
    if (this.#stopping === null) await this.#stores?.start();
    if (this.#stopping === null) await this.#lmcache?.start();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  live(): boolean {
    return !this.#loopLag.isStuck;
  }

  ready(): Readiness {
    const waitingFor: string[] = [];
    if (this.#stopping !== null) waitingFor.push('the shutdown has begun');
    if (!this.#wasReady) {
      for (const { listener } of this.#sources) {
        if (!listener.wasConnected) waitingFor.push(`the engine at ${listener.endpoint}`);
        else if (!listener.isCaughtUp) waitingFor.push(`the replay of ${listener.endpoint}`);
      }
      for (const { plane, planeWasConnected } of this.#relays) {
        if (!planeWasConnected) waitingFor.push(`the ${plane.kind} plane`);
      }
      for (const part of [this.#presence, this.#stores, this.#lmcache])
        waitingFor.push(...(part?.waitingFor ?? []));
      this.#wasReady = waitingFor.length === 0;
    }
    return { ready: waitingFor.length === 0, waitingFor: [...new Set(waitingFor)] };
  }

  status(): StatusSnapshot {
    const ranks = this.#ranks((relay, { listener }) =>
      rankStatus(relay, listener, this.#config, [
        ...this.#presence.notices(relay.dpRank),
        ...(this.#stores?.isSuspect ? [{ code: 'store_suspect' as const }] : []),
      ]),
    );
    const beside = sourcesStatus(this.#stores, this.#lmcache);
    return {
      version: VERSION,
      started_at: this.#startedAt.toISOString(),
      uptime_s: Math.round((Date.now() - this.#startedAt.getTime()) / 1000),
      compat: this.#config.compat,
      state: this.#state([...ranks, ...beside.sources]),
      settings: maskedSettings(this.#config),
      plane: planeStatus(this.#relays, this.#stores?.plane ?? null),
      recovery: this.#recovery && recoveryStatus(this.#recovery),
      ranks,
      worker_load: this.#load?.status() ?? null,
      ...beside,
    };
  }

  indexedRanks(): readonly IndexedRank[] {
    return this.#relays.flatMap((relay) => indexedRank(relay, this.#config) ?? []);
  }

  objects(): ObjectListing | null {
    return this.#stores && objectListing(this.#stores);
  }

  #ranks<Row>(toRow: (relay: Relay, source: EngineSource) => Row): Row[] {
    return this.#sources.flatMap((source) => source.relays.map((relay) => toRow(relay, source)));
  }

  /** Routers that follow the rank take a fresh dump. */
  #announceAnew(dpRank: number): void {
    this.#warner.warn('source_resync', { dpRank }, 'routers may have missed events for good');
    this.#presence.renewRank(dpRank);
  }

  #createServer(): StatusServer | null {
    const { http } = this.#config;
    if (http === null) return null;
    return new StatusServer({
      host: http.host,
      port: http.port,
      status: this,
      index: this,
      objects: this,
      metrics: createRegistry(
        workerMetrics({
          config: this.#config,
          sources: this.#sources,
          presence: this.#presence,
          discovery: this.#discoveryMetrics,
          recovery: this.#recovery,
          load: this.#load,
          stores: this.#stores,
          lmcache: this.#lmcache,
          loopLag: this.#loopLag,
        }),
      ),
      warner: this.#warner,
    });
  }

  async #stop(): Promise<void> {
    const { shutdownTimeoutMs } = this.#config;
    const deadlineMs = performance.now() + shutdownTimeoutMs;
    const listenerMs = shutdownTimeoutMs * LISTENER_STOP_SHARE;
    await Promise.all(this.#sources.map(({ listener }) => listener.stop(listenerMs)));
    const drainMs = Math.max(0, deadlineMs - performance.now());
    const beside = [this.#load, this.#stores, this.#lmcache];
    const parts = [...this.#relays, ...beside].filter((part) => part !== null);
    const drained = Promise.all(parts.map((part) => part.stop(drainMs)));
    // At once: a plane or a registry that is away takes its whole time.
    await Promise.all([drained, this.#presence.stop(WITHDRAW_MS)]);
    // Last of what a source announces: no router is told to ask where nobody answers.
    await this.#recovery?.stop();
    await this.#nats?.stop();
    await this.#server?.stop();
    this.#loopLag.stop();
    this.#warner.flush();
  }

  #state(parts: readonly { readonly degraded: readonly object[] }[]): StatusSnapshot['state'] {
    if (this.#stopping !== null) return 'stopping';
    if (!this.ready().ready) return 'starting';
    return parts.some(({ degraded }) => degraded.length > 0) ? 'degraded' : 'ready';
  }
}
