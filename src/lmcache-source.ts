/**
 * LmcacheSource: the bus of an LMCache beside the engine, as its bridge forwards it, and what is made of it.
 *
 * Link     the bridge speaks as an engine does: the same listener, order, replay and restarts.
 * Reads    for observability; no event of the bus becomes a placement, but some tell what chunks hold, and under which salt.
 * Owns     the listener and the view; the engine's data path is not touched.
 */
import type { WorkerConfig } from './config/worker-config.ts';
import { EngineListener, type ListenerEvent } from './listener/engine-listener.ts';
import type { Logger, Warner } from './log.ts';
import { RelayMetrics } from './metrics/relay-metrics.ts';
import { BusView } from './stores/lmcache/bus-view.ts';
import { takeChunkEvent } from './stores/lmcache/chunk-events.ts';
import type { ChunkPlacements } from './stores/placement/chunk-placements.ts';

export interface LmcacheSourceDeps {
  readonly config: WorkerConfig;
  readonly logger: Logger;
  readonly warner: Pick<Warner, 'warn'>;
  /** Null where no chunks are placed. */
  readonly chunks: ChunkPlacements | null;
}

/** Null where no bridge is configured. */
export function createLmcacheSource(deps: LmcacheSourceDeps): LmcacheSource | null {
  return deps.config.lmcacheBridge === null
    ? null
    : new LmcacheSource(deps, deps.config.lmcacheBridge);
}

/** Twice what a bridge sends at most with the settings it has by default: one message is read in one go. */
const MAX_MESSAGE_BYTES = 16 << 20;

/** Losses make the sums too small; after so long without one that is told no more. */
const LOSS_NOTICE_MS = 300_000;

export class LmcacheSource {
  readonly listener: EngineListener;
  /** What the listener counts: messages are batches there. */
  readonly link: RelayMetrics = new RelayMetrics();
  readonly view: BusView;
  readonly #logger: Logger;
  readonly #warner: Pick<Warner, 'warn'>;
  #lastLossAtMs: number | null = null;
  #dropped = 0;

  constructor({ config, logger, warner, chunks }: LmcacheSourceDeps, endpoint: string) {
    this.#logger = logger;
    this.#warner = warner;
    this.view = new BusView({
      sampleRate: config.lmcacheSamplePercent / 100,
      maxTracked: config.lmcacheMaxTracked,
      maxPending: config.lmcacheMaxPending,
      timeoutS: config.lmcachePairTimeoutS,
      requestTimeoutS: config.lmcacheRequestTimeoutS,
      maxLabelValues: config.lmcacheLabelValues,
      ...(chunks !== null && { onEvent: (event) => takeChunkEvent(event, chunks) }),
    });
    this.listener = new EngineListener(
      {
        endpoint,
        bind: false,
        topic: '',
        receiveHwm: config.engineReceiveHwm,
        maxMessageBytes: Math.min(config.engineMaxMessageBytes, MAX_MESSAGE_BYTES),
        // The bridge is ours: there is no publisher whose losses would have to be repeated.
        compat: 'safe',
        sequencing: {
          clearsOnGap: false,
          clearsOnRestart: false,
          holdBatches: config.replayHoldBatches,
          holdBytes: config.replayHoldBytes,
          idleMs: config.replayIdleMs,
          cooldownMs: config.replayCooldownMs,
        },
        replayEndpoint: config.lmcacheReplay,
        onEvent: (event) => this.#takeListenerEvent(event),
      },
      this.link,
    );
    this.listener.messages$.subscribe(({ payload }) => this.#take(payload));
  }

  start(): Promise<void> {
    return this.listener.start();
  }

  /** What has arrived is still taken, for at most `maxMs`. */
  stop(maxMs: number): Promise<void> {
    return this.listener.stop(maxMs);
  }

  /** Events are known to be missing, so that what is shown is too little. */
  get hasRecentLoss(): boolean {
    if (this.#lastLossAtMs === null) return false;
    return performance.now() - this.#lastLossAtMs < LOSS_NOTICE_MS;
  }

  /** What the start still waits for: the first link, and the replay of what was missed before it. */
  get waitingFor(): string[] {
    const { listener } = this;
    if (!listener.wasConnected) return [`the bridge of LMCache at ${listener.endpoint}`];
    return listener.isCaughtUp ? [] : [`the replay of ${listener.endpoint}`];
  }

  /** Milliseconds since the last message; null before the first. */
  get lastMessageAgeMs(): number | null {
    const { lastMessageAtMs } = this.listener;
    return lastMessageAtMs === null ? null : Math.round(performance.now() - lastMessageAtMs);
  }

  /** Moves windows and time-outs on: on a quiet bus no event does. */
  advance(): void {
    const ageMs = this.lastMessageAgeMs;
    if (ageMs !== null) this.view.advance(this.view.sentAt + ageMs / 1000);
  }

  #take(payload: Uint8Array): void {
    const fault = this.view.take(payload);
    if (fault !== null) {
      this.link.malformed[fault]++;
      this.#noteLoss();
      const fields = { endpoint: this.listener.endpoint, reason: fault };
      this.#warner.warn('lmcache_malformed', fields, "a message of LMCache's bridge was dropped");
      return;
    }
    const { bridgeDropped = 0, busDropped = 0, bridgeUnencodable = 0 } = this.view.status ?? {};
    const dropped = bridgeDropped + busDropped + bridgeUnencodable;
    if (dropped > this.#dropped) {
      this.#noteLoss();
      const fields = { bridgeDropped, busDropped, bridgeUnencodable };
      this.#warner.warn('lmcache_dropped', fields, 'LMCache or its bridge has dropped events');
    }
    this.#dropped = dropped;
  }

  #takeListenerEvent(event: ListenerEvent): void {
    const { endpoint } = this.listener;
    if (event.kind === 'gap') {
      this.#noteLoss();
      const fields = { endpoint, lostMessages: event.lostBatches };
      this.#warner.warn('lmcache_gap', fields, "messages of LMCache's bridge are lost");
    } else if (event.kind === 'restart') {
      this.view.restart();
      this.#dropped = 0;
      this.#warner.warn('lmcache_restart', { endpoint }, 'LMCache has restarted');
    } else if (event.kind === 'absent') {
      const fields = { endpoint, seconds: event.seconds };
      this.#warner.warn('lmcache_absent', fields, 'no bridge of LMCache yet, waiting on');
    } else if (event.kind === 'malformed') {
      this.#noteLoss();
      const fields = { endpoint, reason: event.reason };
      this.#warner.warn('lmcache_malformed', fields, "a message of LMCache's bridge was dropped");
    } else {
      this.#logger.info({ endpoint }, `LMCache's bridge ${event.kind}`);
    }
  }

  #noteLoss(): void {
    this.#lastLossAtMs = performance.now();
  }
}
