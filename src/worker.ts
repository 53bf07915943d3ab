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
import { BatchReader } from './engines/batch-reader.ts';
import { arena } from './kernel/arena.ts';
import { EngineListener, type ListenerEvent } from './listener/engine-listener.ts';
import type { EngineMessage } from './listener/frames.ts';
import { createWarner, type Logger, type Warner } from './log.ts';
import type { MetricsSource } from './metrics/metrics-source.ts';
import { createRegistry } from './metrics/registry.ts';
import { Relay } from './relay.ts';
import { rankStatus } from './relay-status.ts';
import { StatusServer } from './status/http-server.ts';
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

class RelayWorker implements Worker {
  readonly #config: WorkerConfig;
  readonly #logger: Logger;
  readonly #warner: Warner;
  readonly #relay: Relay;
  readonly #listener: EngineListener;
  readonly #reader = new BatchReader();
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
    this.#logger = logger;
    this.#warner = createWarner(logger);
    this.#relay = new Relay({
      config,
      dpRank: config.dpRank,
      publisherId: randomPublisherId(),
      warner: this.#warner,
      onPlaneChange: (isConnected) =>
        logger.info({ plane: config.eventPlane, isConnected }, 'event plane'),
    });
    this.#listener = new EngineListener(
      {
        endpoint: config.engineEndpoint,
        bind: config.engineBind,
        topic: config.engineTopic,
        receiveHwm: config.engineReceiveHwm,
        maxMessageBytes: config.engineMaxMessageBytes,
        onEvent: (event) => this.#takeListenerEvent(event),
      },
      this.#relay.metrics,
    );
    this.#listener.messages$.subscribe((message) => this.#relayMessage(message));
    this.#server = this.#createServer();
  }

  async start(): Promise<void> {
    this.#loopDelay.enable();
    this.#ticker = setInterval(() => {
      this.#lastTickMs = performance.now();
    }, TICK_MS);
    if (this.#server !== null) this.httpUrl = (await this.#server.start()).url;
    if (this.#stopping === null) await this.#relay.start();
    if (this.#stopping === null) await this.#listener.start();
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
      if (!this.#listener.wasConnected) {
        waitingFor.push(`the engine at ${this.#listener.endpoint}`);
      }
      if (!this.#relay.planeWasConnected) waitingFor.push(`the ${this.#relay.plane.kind} plane`);
      this.#wasReady = waitingFor.length === 0;
    }
    return { ready: waitingFor.length === 0, waitingFor };
  }

  status(): StatusSnapshot {
    const { plane } = this.#relay;
    const rank = rankStatus(this.#relay, this.#listener, this.#config);
    return {
      version: VERSION,
      started_at: this.#startedAt.toISOString(),
      uptime_s: Math.round((Date.now() - this.#startedAt.getTime()) / 1000),
      compat: this.#config.compat,
      state: this.#state(rank.degraded.length > 0),
      settings: maskedSettings(this.#config),
      plane: {
        kind: plane.kind,
        connected: plane.isConnected,
        endpoint: plane.endpoint,
        outbox_bytes: plane.outboxBytes,
        outbox_messages: plane.outboxMessages,
      },
      ranks: [rank],
      sources: [],
    };
  }

  #createServer(): StatusServer | null {
    const { http } = this.#config;
    if (http === null) return null;
    return new StatusServer({
      host: http.host,
      port: http.port,
      status: this,
      metrics: createRegistry(this.#metricsSource()),
      warner: this.#warner,
    });
  }

  #metricsSource(): MetricsSource {
    const { namespace, component, workerId } = this.#config;
    return {
      version: VERSION,
      labels: { namespace, component, workerIdHex: workerId.toString(16) },
      relays: () => [
        {
          dpRank: this.#relay.dpRank,
          metrics: this.#relay.metrics,
          engineConnected: this.#listener.isConnected,
          degraded: this.#relay.degraded(this.#listener.isConnected),
        },
      ],
      plane: () => ({
        connected: this.#relay.plane.isConnected,
        outboxBytes: this.#relay.plane.outboxBytes,
        outboxMessages: this.#relay.plane.outboxMessages,
        disconnects: this.#relay.plane.disconnects,
        reconnects: this.#relay.plane.reconnects,
      }),
      eventLoopLagSeconds: () => this.#takeLoopLagSeconds(),
    };
  }

  /** Longest hold of the event loop since the last scrape. */
  #takeLoopLagSeconds(): number {
    const lagNs = this.#loopDelay.max;
    this.#loopDelay.reset();
    return lagNs / 1e9;
  }

  #relayMessage({ payload }: EngineMessage): void {
    const { metrics } = this.#relay;
    arena.reset();
    const batch = this.#reader.read(payload, this.#listener.lastMessageAtMs ?? performance.now());
    if (typeof batch === 'string') {
      metrics.malformed[batch]++;
      const fields = { reason: batch, payloadBytes: payload.length };
      this.#warner.warn(`malformed_${batch}`, fields, 'an engine message was dropped');
      return;
    }
    this.#relay.push(batch);
  }

  #takeListenerEvent(event: ListenerEvent): void {
    const { endpoint } = this.#listener;
    if (event.kind === 'malformed') {
      const cause = `malformed_${event.reason}`;
      this.#warner.warn(cause, { endpoint }, 'an engine message was dropped');
    } else if (event.kind === 'gap') {
      const fields = { endpoint, missingBatches: event.missingBatches };
      this.#warner.warn('engine_gap', fields, 'batches of the engine are missing');
    } else {
      this.#logger.info({ endpoint }, `engine ${event.kind}`);
    }
  }

  async #stop(): Promise<void> {
    const { shutdownTimeoutMs } = this.#config;
    const deadlineMs = performance.now() + shutdownTimeoutMs;
    await this.#listener.stop(shutdownTimeoutMs * LISTENER_STOP_SHARE);
    await this.#relay.stop(Math.max(0, deadlineMs - performance.now()));
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

/** Random, 1 … 2^53 − 1: routers read it from JSON. */
function randomPublisherId(): number {
  return Number(BigInt.asUintN(53, randomBytes(8).readBigUInt64BE())) || 1;
}
