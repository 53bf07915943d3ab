/**
 * Relay: one (worker, dp rank) with its pipeline, its plane and what it counts.
 *
 * Owns     a publisher id (random, new at every start), publish ids from 1, the local indexer.
 * Degraded a fixed list of codes, derived from counters at each look; nothing here is stored twice.
 */
import { Subject } from 'rxjs';
import { rankEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection } from './connections/nats.ts';
import { assertInvariant, messageOf } from './errors.ts';
import { LocalIndexer } from './indexer/local-indexer.ts';
import type { Warner } from './log.ts';
import { totalOf } from './metrics/counts.ts';
import type { DegradedCode } from './metrics/degraded.ts';
import { RelayMetrics } from './metrics/relay-metrics.ts';
import { pipeline } from './pipeline.ts';
import { diverges } from './protocol/compat.ts';
import { EnvelopeEncoder } from './protocol/envelope.ts';
import type { NativeBatch } from './protocol/native-batch.ts';
import { kvEventsSubject, NatsPlane } from './sinks/nats.ts';
import { NonePlane } from './sinks/none.ts';
import type { Plane, PlaneEvent } from './sinks/plane.ts';
import { ZmqPlane } from './sinks/zmq.ts';

/** How long sent messages may stay in a closing ZMQ socket. */
const ZMQ_LINGER_MS = 500;

export interface RelayDeps {
  readonly config: WorkerConfig;
  readonly dpRank: number;
  /** 1 … 2^53 − 1. */
  readonly publisherId: number;
  readonly warner: Pick<Warner, 'warn'>;
  readonly onPlaneChange: (isConnected: boolean) => void;
  /** Shared by all ranks; null on the other planes. */
  readonly nats: NatsConnection | null;
}

export class Relay {
  readonly dpRank: number;
  readonly publisherId: number;
  readonly metrics: RelayMetrics = new RelayMetrics();
  readonly indexer: LocalIndexer | null;
  readonly plane: Plane;
  /** True once the plane has been connected. */
  planeWasConnected = false;
  readonly #config: WorkerConfig;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #onPlaneChange: (isConnected: boolean) => void;
  readonly #native$ = new Subject<NativeBatch>();
  readonly #ended: Promise<void>;

  constructor({ config, dpRank, publisherId, warner, onPlaneChange, nats }: RelayDeps) {
    this.dpRank = dpRank;
    this.publisherId = publisherId;
    this.#config = config;
    this.#warner = warner;
    this.#onPlaneChange = onPlaneChange;
    this.indexer = config.indexer ? this.#createIndexer() : null;
    this.plane = this.#createPlane(nats);
    this.#ended = this.#runPipeline();
  }

  async start(): Promise<void> {
    await this.plane.start();
    if (this.plane.isConnected) this.planeWasConnected = true;
  }

  push(batch: NativeBatch): void {
    this.#native$.next(batch);
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
    this.indexer?.free();
  }

  /** Id of the event published last; null before the first. */
  get lastEventId(): number | null {
    const published = totalOf(this.metrics.publishedEvents);
    return published === 0 ? null : published;
  }

  degraded(isEngineConnected: boolean): DegradedCode[] {
    const { metrics, plane } = this;
    const codes: DegradedCode[] = [];
    if (!isEngineConnected) codes.push('engine_disconnected');
    if (metrics.engineGaps > metrics.engineGapsAtClear) codes.push('engine_gap');
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
    const { batchingTimeoutMs, maxBatchBlocks, maxTrackedBlocks, workerId } = this.#config;
    const { blockSize, imageTokenId, videoTokenId, compat, maxMessageBytes } = this.#config;
    const { engineFullReports } = this.#config;
    const run$ = pipeline(this.#native$, {
      config: {
        workerId,
        blockSize,
        imageTokenId,
        videoTokenId,
        batchingTimeoutMs,
        maxBatchBlocks,
        maxTrackedBlocks,
        maxMessageBytes,
        compat,
        fullReports: engineFullReports,
        envelopes: new EnvelopeEncoder(this.publisherId),
        onUnusableStore: (event) => this.#warnUnusableStore(event.blockSize),
        onDroppedEvents: (reason, count) => this.#warnDroppedEvents(reason, count),
        onTooLarge: (bytes, maxBytes) => this.#warnTooLarge(bytes, maxBytes),
      },
      indexer: this.indexer,
      sink: this.plane,
      metrics: this.metrics,
    });
    return new Promise((resolve) => {
      // No error handler: an error here is a defect and has to end the process.
      run$.subscribe({ complete: resolve });
    });
  }

  #createIndexer(): LocalIndexer {
    const { workerId, maxTrackedBlocks, eventBuffer, eventBufferBytes } = this.#config;
    const bounds = { maxEvents: eventBuffer, maxBytes: eventBufferBytes };
    return new LocalIndexer({ workerId, maxBlocks: maxTrackedBlocks, ...bounds }, this.metrics);
  }

  #createPlane(nats: NatsConnection | null): Plane {
    const { metrics, publisherId } = this;
    const config = this.#config;
    const onEvent = (event: PlaneEvent): void => this.#takePlaneEvent(event);
    const { outboxBytes } = config;
    if (config.eventPlane === 'none') return new NonePlane();
    if (config.eventPlane === 'zmq') {
      const endpoint = rankEndpoint(config.planeEndpoint, this.dpRank - config.dpRank);
      const lingerMs = Math.min(ZMQ_LINGER_MS, config.shutdownTimeoutMs);
      return new ZmqPlane({ endpoint, publisherId, outboxBytes, lingerMs, onEvent }, metrics);
    }
    assertInvariant(nats !== null, 'the NATS plane has no connection');
    return new NatsPlane(
      {
        subject: kvEventsSubject(config.namespace, config.component, config.endpoint),
        servers: config.natsServer,
        outboxBytes,
        resumeDelayMs: config.natsResumeDelayMs,
        resends: diverges(config.compat, 'resend'),
        onEvent,
      },
      nats,
      metrics,
    );
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
