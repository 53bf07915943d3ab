/**
 * Relay: one (worker, dp rank) with its pipeline, its plane and what it counts.
 *
 * Owns     the publisher (worker id, publisher id, publish ids from 1), the local indexer.
 * Queries  of routers are answered from its index, while its output waits for an answer on its way.
 */
import { Subject } from 'rxjs';
import { rankEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { createEventPlane } from './event-plane.ts';
import { LocalIndexer } from './indexer/local-indexer.ts';
import type { Warner } from './log.ts';
import { totalOf } from './metrics/counts.ts';
import { RelayMetrics } from './metrics/relay-metrics.ts';
import { type PlacementSource, pipeline } from './pipeline.ts';
import { diverges } from './protocol/compat.ts';
import type { ChannelTransport } from './protocol/discovery-records.ts';
import { KV_EVENTS_TOPIC } from './protocol/envelope.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import { Publisher, randomPublisherId } from './protocol/publisher.ts';
import { type OwnClearCause, RankCleared } from './protocol/rank-cleared.ts';
import { pipelineWarnings } from './relay-warnings.ts';
import type { PresentSource } from './router/rank-presence.ts';
import type { ServedRank } from './router/recovery/recovery-service.ts';
import { ResyncMonitor } from './router/recovery/resync-monitor.ts';
import { OutputHold } from './sinks/output-hold.ts';
import type { Plane, PlaneEvent } from './sinks/plane.ts';

/** How long sent messages may stay in a closing ZMQ socket. */
const ZMQ_LINGER_MS = 500;

export interface RelayDeps {
  readonly config: WorkerConfig;
  readonly dpRank: number;
  readonly warner: Pick<Warner, 'warn'>;
  readonly onPlaneChange: (isConnected: boolean) => void;
  /** Shared by all ranks; null on the other planes. */
  readonly nats: NatsConnection | null;
  /** Blocks of this rank that stores hold, which complete before a stop; absent where no key says which. */
  readonly placements?: PlacementSource | null | undefined;
  /** Routers should take a fresh dump: the source has to be announced under a new publisher id. */
  readonly onResync: (relay: Relay) => void;
  /** Whether routers know the source now, and whom to ask about it; absent: they never do. */
  readonly isRecoverable?: () => boolean;
}

export class Relay implements PresentSource {
  readonly dpRank: number;
  /** Of the socket that carries this rank. */
  readonly engineEndpoint: string;
  readonly metrics: RelayMetrics = new RelayMetrics();
  /** Null where routers cannot ask. */
  readonly indexer: LocalIndexer | null;
  readonly plane: Plane;
  readonly hold: OutputHold;
  /** True once the plane has been connected. */
  planeWasConnected = false;
  readonly #config: WorkerConfig;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #onPlaneChange: (isConnected: boolean) => void;
  readonly #publisher: Publisher;
  readonly #resyncs: ResyncMonitor;
  readonly #resumed$ = new Subject<void>();
  readonly #flush$ = new Subject<void>();
  readonly #native$ = new Subject<NativeBatch | RankCleared>();
  readonly #ended: Promise<void>;

  constructor(deps: RelayDeps) {
    const { config, dpRank, warner, onPlaneChange, nats } = deps;
    this.dpRank = dpRank;
    const offset = config.engineSockets === 'shared' ? 0 : dpRank - config.dpRank;
    this.engineEndpoint = rankEndpoint(config.engineEndpoint, offset);
    this.#config = config;
    this.#warner = warner;
    this.#onPlaneChange = onPlaneChange;
    const publisherId = randomPublisherId();
    this.plane = createEventPlane(config, {
      topic: KV_EVENTS_TOPIC,
      endpoint: rankEndpoint(config.planeEndpoint, dpRank - config.dpRank),
      publisherId,
      nats,
      metrics: this.metrics,
      outboxBytes: config.outboxBytes,
      lingerMs: Math.min(ZMQ_LINGER_MS, config.shutdownTimeoutMs),
      resends: diverges(config.compat, 'resend'),
      onEvent: (event) => this.#takePlaneEvent(event),
    });
    const { workerId } = config;
    this.#publisher = new Publisher({ workerId, publisherId, room: this.plane.messageRoom });
    this.indexer = config.indexer ? this.#createIndexer() : null;
    this.#resyncs = new ResyncMonitor({
      quietMs: config.resyncQuietMs,
      lostMessages: () => totalOf(this.metrics.publishFailures),
      onResync: () => {
        this.metrics.sourceResyncs++;
        deps.onResync(this);
      },
    });
    this.hold = new OutputHold(
      {
        maxBytes: config.outboxBytes,
        maxHoldMs: config.outputHoldMs,
        onBegin: () => this.#flush$.next(),
        onOverrun: () => this.#resyncs.noteOverrun(),
      },
      this.plane,
      this.metrics,
    );
    this.#ended = this.#runPipeline(deps);
  }

  /** Null while discovery shows no worker: nothing is published. */
  get workerId(): bigint | null {
    return this.#publisher.workerId;
  }

  /** 1 … 2^53 − 1, new at every start and with every incarnation. */
  get publisherId(): number {
    return this.#publisher.publisherId;
  }

  get channel(): ChannelTransport | null {
    return this.plane.channel;
  }

  openPublisher(workerId: bigint): void {
    this.#flush$.next();
    this.#publisher.open(workerId);
    this.indexer?.beginIncarnation();
    this.metrics.supersededMessages += this.hold.discard();
    this.metrics.supersededMessages += this.plane.startPublisher(this.publisherId);
  }

  closePublisher(): void {
    this.#flush$.next();
    this.#publisher.close();
  }

  async start(): Promise<void> {
    await this.plane.start();
    if (this.plane.isConnected) this.planeWasConnected = true;
  }

  push(batch: NativeBatch): void {
    this.#native$.next(batch);
  }

  /** Publishes one Cleared of the rank, behind all that was pushed before. */
  clear(cause: OwnClearCause): void {
    this.#native$.next(new RankCleared(this.dpRank, cause, performance.now()));
  }

  /** What routers' queries about this rank are answered from; null where there is no index. */
  get served(): ServedRank | null {
    const { indexer: index, metrics } = this;
    return index && { index, metrics, hold: this.#resyncs.watching(this.hold) };
  }

  /** Flushes what is pending, then drains the plane for at most `drainMs`. */
  async stop(drainMs: number): Promise<void> {
    this.#native$.complete();
    await this.#ended;
    this.#resyncs.stop();
    this.hold.release();
    await this.plane.stop(drainMs);
    const { outboxMessages, outboxBytes } = this.plane;
    if (outboxMessages > 0) {
      const fields = { dpRank: this.dpRank, outboxMessages, outboxBytes };
      this.#warner.warn('unconfirmed_at_stop', fields, 'messages were not confirmed by the plane');
    }
    this.indexer?.free();
  }

  /** Id of the event published last; null before the first of this incarnation. */
  get lastEventId(): number | null {
    return this.#publisher.lastEventId;
  }

  #runPipeline({ isRecoverable, placements = null }: RelayDeps): Promise<void> {
    const mayBeat = (): boolean => this.#isHeard && isRecoverable?.() === true;
    const { batchingTimeoutMs, maxBatchBlocks, maxTrackedBlocks, compat } = this.#config;
    const { blockSize, imageTokenId, videoTokenId, maxMessageBytes } = this.#config;
    const run$ = pipeline(this.#native$, {
      config: {
        publisher: this.#publisher,
        blockSize,
        imageTokenId,
        videoTokenId,
        batchingTimeoutMs,
        maxBatchBlocks,
        maxTrackedBlocks,
        maxMessageBytes,
        compat,
        fullReports: this.#config.engineFullReports,
        ...pipelineWarnings(this.#warner, this.dpRank, blockSize),
      },
      indexer: this.indexer,
      sink: this.hold,
      metrics: this.metrics,
      heartbeats: { dpRank: this.dpRank, resumed$: this.#resumed$, mayBeat },
      placements,
      joining: { atTurnEnd: setImmediate, flush$: this.#flush$ },
    });
    return new Promise((resolve) => {
      // No error handler: an error here is a defect and has to end the process.
      run$.subscribe({ complete: resolve });
    });
  }

  /** What is published now leaves at once, and is not the first of this incarnation. */
  get #isHeard(): boolean {
    const { plane, hold, lastEventId } = this;
    const isOnItsWay = plane.kind !== 'none' && plane.isConnected && !hold.isHolding;
    return isOnItsWay && lastEventId !== null;
  }

  #createIndexer(): LocalIndexer {
    const { maxTrackedBlocks: maxBlocks, eventBuffer, eventBufferBytes } = this.#config;
    const bounds = { maxBlocks, maxEvents: eventBuffer, maxBytes: eventBufferBytes };
    return new LocalIndexer({ publisher: this.#publisher, ...bounds }, this.metrics);
  }

  #takePlaneEvent(event: PlaneEvent): void {
    const { dpRank } = this;
    if (event.kind === 'connected') {
      this.planeWasConnected = true;
      this.#resumed$.next();
    }
    if (event.kind === 'connected' || event.kind === 'disconnected') {
      this.#onPlaneChange(event.kind === 'connected');
    } else if (event.kind === 'dropped') {
      const fields = { dpRank, reason: event.reason };
      this.#warner.warn(`plane_${event.reason}`, fields, 'a message for the routers was dropped');
    } else {
      const fields = { dpRank, subscribers: event.subscribers };
      this.#warner.warn(
        'plane_refused',
        fields,
        'a subscriber was sent away: as many as may be are there',
      );
    }
  }
}
