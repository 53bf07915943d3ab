/**
 * WorkerLoad: the engine's load told to routers, for all ranks of a worker; `--engine-metrics` turns
 * it on.
 *
 * Owns     a publisher id and numbers of its own, and a plane of its own beside the ranks': routers
 *          follow the topic apart from the events.
 * Never    holds the events back, nor makes the worker wait or unready.
 */
import { loadEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { assertInvariant } from './errors.ts';
import { createEventPlane } from './event-plane.ts';
import type { Warner } from './log.ts';
import { LoadMetrics } from './metrics/load-metrics.ts';
import type { ChannelTransport } from './protocol/discovery-records.ts';
import { KV_METRICS_TOPIC, LoadEventEncoder } from './protocol/load-event.ts';
import { randomPublisherId } from './protocol/publisher.ts';
import { LOAD_ENGINES, type LoadEngine } from './router/load/engine-series.ts';
import type { PresentLoad } from './router/load/load-announcer.ts';
import { LoadMonitor } from './router/load/load-monitor.ts';
import type { Plane } from './sinks/plane.ts';
import type { WorkerLoadStatus } from './status/status-source.ts';

/** Old load is worth little: this holds some 300 messages. */
const OUTBOX_BYTES = 1 << 16;

export interface WorkerLoadDeps {
  readonly config: WorkerConfig;
  readonly warner: Pick<Warner, 'warn'>;
  /** Shared with the ranks' planes; null on the other planes. */
  readonly nats: NatsConnection | null;
}

/** Null without `--engine-metrics`. */
export function createWorkerLoad(deps: WorkerLoadDeps): WorkerLoad | null {
  const { engineMetrics, engine } = deps.config;
  if (engineMetrics === null) return null;
  const loadEngine = LOAD_ENGINES.find((name) => name === engine);
  assertInvariant(loadEngine !== undefined, 'worker load of an engine that tells none');
  return new WorkerLoad(engineMetrics, loadEngine, deps);
}

export class WorkerLoad implements PresentLoad {
  readonly metrics: LoadMetrics = new LoadMetrics();
  readonly publisherId: number = randomPublisherId();
  readonly #url: string;
  readonly #deps: WorkerLoadDeps;
  readonly #encoder: LoadEventEncoder;
  readonly #plane: Plane;
  readonly #monitor: LoadMonitor;

  constructor(url: string, engine: LoadEngine, deps: WorkerLoadDeps) {
    const { config, warner } = deps;
    const { dpRank, dpSize, blockSize, workerId } = config;
    this.#url = url;
    this.#deps = deps;
    this.#encoder = new LoadEventEncoder(workerId, this.publisherId);
    this.#plane = this.#createPlane();
    this.#monitor = new LoadMonitor(
      {
        url,
        engine,
        dpRank,
        dpSize,
        blockSize,
        encoder: this.#encoder,
        send: (message) => this.#plane.publish(message),
        warner,
      },
      this.metrics,
    );
  }

  get dpRank(): number {
    return this.#deps.config.dpRank;
  }

  get engineEndpoint(): string {
    return this.#deps.config.engineEndpoint;
  }

  get channel(): ChannelTransport | null {
    return this.#plane.channel;
  }

  /** Whose load it is from here on; null: nobody's, and nothing is told. */
  takeWorker(workerId: bigint | null): void {
    this.#encoder.workerId = workerId;
  }

  async start(): Promise<void> {
    await this.#plane.start();
    this.#monitor.start();
  }

  async stop(drainMs: number): Promise<void> {
    await this.#monitor.stop();
    await this.#plane.stop(drainMs);
  }

  status(): WorkerLoadStatus {
    const { dpRank, dpSize } = this.#deps.config;
    return {
      engine_metrics: this.#url,
      publisher_id: this.publisherId.toString(),
      plane_endpoint: this.#plane.endpoint,
      ranks: Array.from({ length: dpSize }, (_, offset) => ({
        dp_rank: dpRank + offset,
        kv_used_blocks: this.metrics.kvUsedBlocks.get(dpRank + offset) ?? null,
      })),
    };
  }

  #createPlane(): Plane {
    const { config, nats } = this.#deps;
    const options = {
      topic: KV_METRICS_TOPIC,
      endpoint: loadEndpoint(config.planeEndpoint, config.dpSize),
      publisherId: this.publisherId,
      nats,
      metrics: this.metrics,
      outboxBytes: OUTBOX_BYTES,
      lingerMs: 0,
      resends: false,
      onEvent: () => undefined,
    };
    return createEventPlane(config, options);
  }
}
