/**
 * Relay: one (worker, dp rank) with its pipeline, its plane and what it counts.
 *
 * Owns     the publisher (worker id, publisher id, publish ids from 1), the live set.
 * Degraded a fixed list of codes, derived from counters at each look; nothing here is stored twice.
 */
import { Subject } from 'rxjs';
import { rankEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { messageOf } from './errors.ts';
import { createEventPlane } from './event-plane.ts';
import { LiveSet } from './indexer/live-set.ts';
import type { Warner } from './log.ts';
import { totalOf } from './metrics/counts.ts';
import type { DegradedCode } from './metrics/degraded.ts';
import { RelayMetrics } from './metrics/relay-metrics.ts';
import { pipeline } from './pipeline.ts';
import { diverges } from './protocol/compat.ts';
import type { ChannelTransport } from './protocol/discovery-records.ts';
import { KV_EVENTS_TOPIC } from './protocol/envelope.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import { Publisher } from './protocol/publisher.ts';
import { type OwnClearCause, RankCleared } from './protocol/rank-cleared.ts';
import type { PresentSource } from './router/rank-presence.ts';
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
}

export class Relay implements PresentSource {
  readonly dpRank: number;
  /** Of the socket that carries this rank. */
  readonly engineEndpoint: string;
  readonly metrics: RelayMetrics = new RelayMetrics();
  readonly liveSet: LiveSet | null;
  readonly plane: Plane;
  /** True once the plane has been connected. */
  planeWasConnected = false;
  readonly #config: WorkerConfig;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #onPlaneChange: (isConnected: boolean) => void;
  readonly #publisher: Publisher;
  readonly #native$ = new Subject<NativeBatch | RankCleared>();
  readonly #ended: Promise<void>;

  constructor({ config, dpRank, warner, onPlaneChange, nats }: RelayDeps) {
    this.dpRank = dpRank;
    const isShared = config.engineSockets === 'shared';
    this.engineEndpoint = rankEndpoint(
      config.engineEndpoint,
      isShared ? 0 : dpRank - config.dpRank,
    );
    this.#publisher = new Publisher({ workerId: config.workerId });
    this.#config = config;
    this.#warner = warner;
    this.#onPlaneChange = onPlaneChange;
    this.liveSet = config.indexer ? new LiveSet(config.maxTrackedBlocks, this.metrics) : null;
    this.plane = createEventPlane(config, {
      topic: KV_EVENTS_TOPIC,
      endpoint: rankEndpoint(config.planeEndpoint, dpRank - config.dpRank),
      publisherId: this.publisherId,
      nats,
      metrics: this.metrics,
      outboxBytes: config.outboxBytes,
      lingerMs: Math.min(ZMQ_LINGER_MS, config.shutdownTimeoutMs),
      resends: diverges(config.compat, 'resend'),
      onEvent: (event) => this.#takePlaneEvent(event),
    });
    this.#ended = this.#runPipeline();
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
    this.#publisher.open(workerId);
    this.metrics.supersededMessages += this.plane.startPublisher(this.publisherId);
  }

  closePublisher(): void {
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

  /** Flushes what is pending, then drains the plane for at most `drainMs`. */
  async stop(drainMs: number): Promise<void> {
    this.#native$.complete();
    await this.#ended;
    await this.plane.stop(drainMs);
    const { outboxMessages, outboxBytes } = this.plane;
    if (outboxMessages > 0) {
      const fields = { dpRank: this.dpRank, outboxMessages, outboxBytes };
      this.#warner.warn('unconfirmed_at_stop', fields, 'messages were not confirmed by the plane');
    }
    this.liveSet?.free();
  }

  /** Id of the event published last; null before the first of this incarnation. */
  get lastEventId(): number | null {
    return this.#publisher.lastEventId;
  }

  degraded(isEngineConnected: boolean): DegradedCode[] {
    const { metrics, plane } = this;
    const codes: DegradedCode[] = [];
    if (!isEngineConnected) codes.push('engine_disconnected');
    if (metrics.engineGaps > metrics.engineGapsAtClear) codes.push('engine_gap');
    if (metrics.replayLosses > metrics.replayLossesAtClear) codes.push('recovered_with_loss');
    if (this.#hasLostMessagesOrRemovals()) codes.push('event_dropped');
    if (this.#hasOnlyWrongBlockSizes()) codes.push('block_size_mismatch');
    if (this.hasOnlyFilteredEvents) codes.push('filtered_only');
    if (!plane.isConnected) codes.push('plane_disconnected');
    if (!plane.isConnected && metrics.publishFailures.outbox_full > 0)
      codes.push('outbox_dropping');
    if (plane.hasSlowSubscriber) codes.push('slow_subscriber');
    if (metrics.untrackedBlocks + metrics.unindexedBlocks > 0) codes.push('tracking_full');
    if (metrics.isEngineUnsupported) codes.push('engine_unsupported');
    return codes;
  }

  get hasOnlyFilteredEvents(): boolean {
    return totalOf(this.metrics.received) > 0 && totalOf(this.metrics.accepted) === 0;
  }

  #hasLostMessagesOrRemovals(): boolean {
    const { metrics } = this;
    return (
      metrics.unreadableMessages > metrics.unreadableMessagesAtClear ||
      metrics.droppedRemovals > metrics.droppedRemovalsAtClear
    );
  }

  #hasOnlyWrongBlockSizes(): boolean {
    return this.metrics.wrongSizeStores > 0 && this.metrics.usableStores === 0;
  }

  #runPipeline(): Promise<void> {
    const { batchingTimeoutMs, maxBatchBlocks, maxTrackedBlocks } = this.#config;
    const { blockSize, imageTokenId, videoTokenId, compat, maxMessageBytes } = this.#config;
    const { engineFullReports } = this.#config;
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
        fullReports: engineFullReports,
        onUnusableStore: (event) => this.#warnUnusableStore(event.blockSize),
        onDroppedEvents: (reason, count) => this.#warnDroppedEvents(reason, count),
        onTooLarge: (bytes, maxBytes) => this.#warnTooLarge(bytes, maxBytes),
      },
      liveSet: this.liveSet,
      sink: this.plane,
      metrics: this.metrics,
    });
    return new Promise((resolve) => {
      // No error handler: an error here is a defect and has to end the process.
      run$.subscribe({ complete: resolve });
    });
  }

  #takePlaneEvent(event: PlaneEvent): void {
    const { dpRank } = this;
    if (event.kind === 'connected') this.planeWasConnected = true;
    if (event.kind === 'connected' || event.kind === 'disconnected') {
      this.#onPlaneChange(event.kind === 'connected');
    } else if (event.kind === 'dropped') {
      const fields = { dpRank, reason: event.reason };
      this.#warner.warn(`plane_${event.reason}`, fields, 'a message for the routers was dropped');
    } else {
      const reason = messageOf(event.error);
      this.#warner.warn('plane_error', { dpRank, reason }, 'the event plane cannot be reached');
    }
  }

  #warnUnusableStore(blockSize: number): void {
    const fields = { dpRank: this.dpRank, blockSize, configured: this.#config.blockSize };
    this.#warner.warn(
      'empty_store_blocks',
      fields,
      'a store holds no block of the configured size',
    );
  }

  #warnDroppedEvents(reason: string, count: number): void {
    const fields = { dpRank: this.dpRank, reason, count };
    this.#warner.warn(`dropped_${reason}`, fields, 'engine events were dropped');
  }

  #warnTooLarge(messageBytes: number, maxMessageBytes: number): void {
    const fields = { dpRank: this.dpRank, messageBytes, maxMessageBytes };
    this.#warner.warn('payload_too_large', fields, 'a message is larger than the plane accepts');
  }
}
