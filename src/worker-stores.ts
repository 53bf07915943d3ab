/**
 * WorkerStores: the stores beside the engine, what they hold, and the stream that tells it; `--mooncake-…`,
 * `--lmcache-stream` and `--lmcache-coordinator-…` turn it on.
 *
 * Owns     one state for all sources, the publisher of `kv-objects` with a plane of its own, and on NATS the
 *          subject at which consumers ask for what they missed.
 * Never    holds the engine's events back.
 */
import { randomInt } from 'node:crypto';
import { objectsEndpoint } from './config/addresses.ts';
import type { WorkerConfig } from './config/worker-config.ts';
import type { NatsConnection, NatsResponder } from './connections/nats.ts';
import { keyPatternOf, parsedHashOf } from './engines/mooncake/key-patterns.ts';
import { createEventPlane } from './event-plane.ts';
import type { Logger, Warner } from './log.ts';
import { ObjectStreamMetrics } from './metrics/object-metrics.ts';
import type { PlacementSource } from './pipeline.ts';
import { OBJECTS_TOPIC, objectRequestSubject } from './protocol/object-event.ts';
import { randomPublisherId } from './protocol/publisher.ts';
import type { StorageTier } from './protocol/storage-tier.ts';
import type { Plane } from './sinks/plane.ts';
import type { CoordinatorSource } from './stores/lmcache/coordinator/coordinator-source.ts';
import { LmcacheStreamSource } from './stores/lmcache-stream/stream-source.ts';
import { LMCACHE_STREAM } from './stores/lmcache-stream/stream-view.ts';
import { MooncakeSource } from './stores/mooncake/mooncake-source.ts';
import type { ObjectChange } from './stores/objects/object-change.ts';
import { answerObjectRequest } from './stores/objects/object-requests.ts';
import { ObjectState } from './stores/objects/object-state.ts';
import { ObjectStream } from './stores/objects/object-stream.ts';
import type { ChunkPlacements } from './stores/placement/chunk-placements.ts';
import { RankPlacements } from './stores/placement/rank-placements.ts';
import { StorePlacements } from './stores/placement/store-placements.ts';
import { TurnQueue } from './stores/placement/turn-queue.ts';
import type { StoreSource } from './stores/store-source.ts';
import { createChunkPlacements, joinPlacements } from './worker-chunks.ts';
import { createCoordinator } from './worker-coordinator.ts';

const MAX_KEY_BYTES = 2 ** 31;
const MAX_SCOPES = 4096;
const MAX_ATTRIBUTE_SETS = 65_536;
const OUTBOX_BYTES = 16 << 20;
const ZMQ_LINGER_MS = 500;

export interface WorkerStoresDeps {
  readonly config: WorkerConfig;
  readonly logger: Logger;
  readonly warner: Pick<Warner, 'warn'>;
  /** Shared with the ranks' planes; null on the other planes. */
  readonly nats: NatsConnection | null;
}

/** Null where no store is configured. Throws ConfigError for a key pattern that is none. */
export function createWorkerStores(deps: WorkerStoresDeps): WorkerStores | null {
  const { mooncakeEndpoint, lmcacheStream, lmcacheCoordinatorListen } = deps.config;
  const endpoints = [mooncakeEndpoint, lmcacheStream, lmcacheCoordinatorListen];
  return endpoints.every((endpoint) => endpoint === null) ? null : new WorkerStores(deps);
}

export class WorkerStores {
  readonly metrics: ObjectStreamMetrics = new ObjectStreamMetrics();
  readonly state: ObjectState;
  readonly stream: ObjectStream;
  readonly plane: Plane;
  readonly sources: readonly StoreSource[];
  /** Null where LMCache's servers do not post here. */
  readonly coordinator: CoordinatorSource | null;
  /** Null where keys are not looked into. */
  readonly placements: StorePlacements | null;
  /** Null where no chunks of LMCache are placed. */
  readonly chunks: ChunkPlacements | null;
  readonly #deps: WorkerStoresDeps;
  /** Had a connection once, by source. */
  readonly #wasConnected = new Set<StoreSource>();
  readonly #turns = new TurnQueue({ defer: setImmediate, nowMs: () => performance.now() });
  #planeWasConnected = false;
  #responder: NatsResponder | null = null;

  constructor(deps: WorkerStoresDeps) {
    const { config } = deps;
    this.#deps = deps;
    const publisherId = randomPublisherId();
    this.plane = this.#createPlane(publisherId);
    this.stream = new ObjectStream(
      {
        publisherId,
        log: { maxEvents: config.objectBuffer, maxBytes: config.objectBufferBytes },
        send: (message) => this.plane.publish(message),
        maxMessageBytes: () => Math.min(config.maxMessageBytes, this.plane.maxMessageBytes),
        defer: setImmediate,
      },
      this.metrics,
    );
    this.state = new ObjectState({
      maxObjects: config.mooncakeMaxObjects,
      maxKeyBytes: MAX_KEY_BYTES,
      maxScopes: MAX_SCOPES,
      maxAttributeSets: MAX_ATTRIBUTE_SETS,
      onChange: (change) => this.#takeChange(change),
    });
    this.chunks = createChunkPlacements(config, this.#turns);
    this.coordinator = createCoordinator(deps, this.state, this.chunks);
    const sources = [this.#createMooncake(), this.#createLmcacheStream(), this.coordinator];
    this.sources = sources.filter((source) => source !== null);
    this.placements = this.#createPlacements();
  }

  /** In which routers see what the store holds. */
  get storageTier(): StorageTier {
    return this.#deps.config.mooncakeTier;
  }

  /** Where blocks of the rank are placed; null where none are. */
  placementsOf(dpRank: number): PlacementSource | null {
    const offset = dpRank - this.#deps.config.dpRank;
    return joinPlacements([this.placements?.ranks[offset], this.chunks?.ranks[offset]]);
  }

  /** What is held of a store may be wrong. */
  get isSuspect(): boolean {
    return this.sources.some((source) => source.isSuspect);
  }

  /** What the start still waits for. */
  get waitingFor(): string[] {
    const waiting = this.sources.filter((source) => {
      if (source.isConnected) this.#wasConnected.add(source);
      return !this.#wasConnected.has(source);
    });
    if (this.plane.isConnected) this.#planeWasConnected = true;
    return [
      ...waiting.map((source) => `the ${source.name} store at ${source.reading().endpoint}`),
      ...(this.#planeWasConnected ? [] : [`the ${this.plane.kind} plane`]),
    ];
  }

  async start(): Promise<void> {
    await this.plane.start();
    const { nats } = this.#deps;
    const subject = objectRequestSubject(this.stream.publisherId);
    this.#responder =
      nats?.respond(subject, (request) => answerObjectRequest(request, this.state, this.stream)) ??
      null;
    for (const source of this.sources) await source.start();
  }

  async stop(drainMs: number): Promise<void> {
    // At once: the ranks' pipelines end behind it.
    for (const { ranks } of [this.placements, this.chunks].filter((part) => part !== null)) {
      for (const rank of ranks) rank.stop();
    }
    await Promise.all(this.sources.map((source) => source.stop()));
    this.stream.flush();
    this.#responder?.stop();
    await this.plane.stop(drainMs);
  }

  #takeChange(change: ObjectChange): void {
    this.stream.push(change);
    this.placements?.take(change);
    if (change.cause !== 'invalidated') return;
    const source = this.sources.find((one) => one.owns(change.scope));
    if (source === undefined) return;
    if (change.type === 'cleared') source.metrics.invalidatedObjects += change.objectCount;
    else if (change.media.length === 0) source.metrics.invalidatedObjects++;
  }

  #createMooncake(): StoreSource | null {
    const { config, logger, warner } = this.#deps;
    const { mooncakeEndpoint, mooncakeMaster, mooncakeReconcileSeconds, mooncakeHoldBytes } =
      config;
    if (mooncakeEndpoint === null) return null;
    return new MooncakeSource({
      endpoint: mooncakeEndpoint,
      master: mooncakeMaster,
      reconcileSeconds: mooncakeReconcileSeconds,
      maxHeldBytes: mooncakeHoldBytes,
      state: this.state,
      warner,
      onLink: (isConnected) =>
        logger.info({ source: 'mooncake', endpoint: mooncakeEndpoint, isConnected }, 'store'),
    });
  }

  #createLmcacheStream(): StoreSource | null {
    const { config, logger, warner } = this.#deps;
    const { lmcacheStream: endpoint, lmcacheModel, lmcacheStreamModels } = config;
    if (endpoint === null) return null;
    return new LmcacheStreamSource({
      endpoint,
      modelNames: [
        ...(lmcacheModel === null ? [] : [lmcacheModel]),
        ...(lmcacheStreamModels ?? []),
      ],
      instanceId: config.lmcacheStreamInstance ?? randomInt(2 ** 47),
      pageRecords: config.lmcacheStreamMaxEvents,
      state: this.state,
      placements: this.chunks,
      warner,
      defer: (portion) => this.#turns.add(portion),
      onLink: (isConnected) =>
        logger.info({ source: LMCACHE_STREAM, endpoint, isConnected }, 'store'),
    });
  }

  #createPlacements(): StorePlacements | null {
    const { dpRank, dpSize, mooncakeKeyPattern, mooncakeTier, maxTrackedBlocks } =
      this.#deps.config;
    if (mooncakeKeyPattern === null) return null;
    const pattern = keyPatternOf(mooncakeKeyPattern);
    const placements = new StorePlacements({
      source: 'mooncake',
      patternName: pattern.name,
      parse: (objectKey) => pattern.parse(objectKey),
      hashOf: parsedHashOf,
    });
    placements.ranks = Array.from(
      { length: dpSize },
      (_, offset) =>
        new RankPlacements({
          dpRank: dpRank + offset,
          storageTier: mooncakeTier,
          maxBlocks: maxTrackedBlocks,
          isHeld: (low, high) => placements.isHeld(low, high),
          nowMs: () => performance.now(),
          defer: (portion) => this.#turns.add(portion),
        }),
    );
    return placements;
  }

  #createPlane(publisherId: number): Plane {
    const { config, nats } = this.#deps;
    return createEventPlane(config, {
      topic: OBJECTS_TOPIC,
      endpoint: objectsEndpoint(config.planeEndpoint, config.dpSize),
      publisherId,
      nats,
      metrics: this.metrics,
      outboxBytes: OUTBOX_BYTES,
      lingerMs: Math.min(ZMQ_LINGER_MS, config.shutdownTimeoutMs),
      resends: true,
      onEvent: () => undefined,
    });
  }
}
