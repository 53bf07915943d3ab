/**
 * EngineProbe: listens to one engine socket as a second subscriber, and notes what it sees.
 *
 * Reads    as the relay will: the same batch reader, filter and converter, with the same settings.
 * Ends     SETTLED_MS after the first store, or with the time; nothing is sent to the engine.
 */
import { Subscriber } from 'zeromq';
import type { WorkerConfig } from '../../config/worker-config.ts';
import { MessageReader, socketOptions } from '../../connections/zmq.ts';
import { BatchReader } from '../../engines/batch-reader.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { arena } from '../../kernel/arena.ts';
import { readFrames } from '../../listener/frames.ts';
import { RelayMetrics } from '../../metrics/relay-metrics.ts';
import { Normalizer } from '../../processor/normalizer.ts';
import type { NativeBatch } from '../../protocol/native-batch.ts';
import { isPlaneMessage } from '../inspect-plane.ts';
import { pause } from './context.ts';
import { type Reach, reach } from './reach.ts';

export interface EngineSighting {
  readonly endpoint: string;
  /** Null where the relay binds the address. */
  readonly reach: Reach | null;
  /** Why the address cannot be bound; null where it can, or is not. */
  bindProblem: string | null;
  hasHandshake: boolean;
  /** Messages of whatever topic, and those that the relay would get. */
  messages: number;
  matching: number;
  /** Topics that the relay would not get; bounded. */
  readonly foreignTopics: Set<string>;
  planeMessages: number;
  /** Messages that cannot be read, by reason. */
  readonly malformed: Map<string, number>;
  batches: number;
  /** Batches by the rank they name. */
  readonly ranks: Map<number | null, number>;
  readonly metrics: RelayMetrics;
  /** Attention groups, as `0 full_attention`; bounded. */
  readonly groups: Set<string>;
  /** Engine's clock less ours, ms, where it was least; null before a batch has told the time. */
  skewMs: number | null;
  /** Ms of the process since its start. */
  watchedMs: number;
}

const SETTLED_MS = 1000;
const POLL_MS = 20;
const MAX_TEXTS = 8;
const MAX_RANKS = 1024;
const SECONDS_2001 = 1e9;
const SECONDS_5138 = 1e11;

export async function watchEngine(
  endpoint: string,
  config: WorkerConfig,
  ended: AbortSignal,
): Promise<EngineSighting> {
  const startMs = performance.now();
  const { engineBind } = config;
  const found = engineBind ? null : await reach(endpoint, ended);
  const sighting = emptySighting(endpoint, found);
  if (found === null || found.kind === 'zmq') await listen(sighting, config, ended);
  sighting.watchedMs = performance.now() - startMs;
  return sighting;
}

function emptySighting(endpoint: string, found: Reach | null): EngineSighting {
  return {
    endpoint,
    reach: found,
    bindProblem: null,
    hasHandshake: false,
    messages: 0,
    matching: 0,
    foreignTopics: new Set(),
    planeMessages: 0,
    malformed: new Map(),
    batches: 0,
    ranks: new Map(),
    metrics: new RelayMetrics(),
    groups: new Set(),
    skewMs: null,
    watchedMs: 0,
  };
}

async function listen(
  sighting: EngineSighting,
  config: WorkerConfig,
  ended: AbortSignal,
): Promise<void> {
  const { endpoint } = sighting;
  const socket = new Subscriber({
    ...socketOptions(endpoint, 0),
    receiveHighWaterMark: config.engineReceiveHwm,
    maxMessageSize: config.engineMaxMessageBytes,
  });
  socket.events.on('handshake', () => {
    sighting.hasHandshake = true;
  });
  // Everything: a topic that the relay does not take is worth to be told.
  socket.subscribe('');
  try {
    if (config.engineBind) await socket.bind(endpoint);
    else socket.connect(endpoint);
  } catch (error) {
    sighting.bindProblem = errorCode(error) === 'EADDRINUSE' ? 'it is in use' : messageOf(error);
    socket.close();
    return;
  }
  const observer = new EngineObserver(sighting, config);
  const reader = new MessageReader(socket, (frames) => observer.take(frames));
  let firstStoreMs: number | null = null;
  while (!ended.aborted) {
    await pause(POLL_MS, ended);
    if (sighting.metrics.received.stored > 0) firstStoreMs ??= performance.now();
    if (firstStoreMs !== null && performance.now() - firstStoreMs >= SETTLED_MS) break;
  }
  await reader.close(config.engineBind ? endpoint : null);
  observer.free();
}

class EngineObserver {
  readonly #sighting: EngineSighting;
  readonly #topic: Buffer;
  readonly #compat: WorkerConfig['compat'];
  readonly #reader: BatchReader;
  readonly #normalizer: Normalizer;

  constructor(sighting: EngineSighting, config: WorkerConfig) {
    this.#sighting = sighting;
    this.#topic = Buffer.from(config.engineTopic);
    this.#compat = config.compat;
    this.#reader = new BatchReader(config);
    this.#normalizer = new Normalizer(config, sighting.metrics);
  }

  take(frames: readonly Buffer[]): void {
    const sighting = this.#sighting;
    sighting.messages++;
    const topic = frames[0] ?? Buffer.alloc(0);
    if (!topic.subarray(0, this.#topic.length).equals(this.#topic)) {
      if (sighting.foreignTopics.size < MAX_TEXTS) sighting.foreignTopics.add(topic.toString());
      return;
    }
    sighting.matching++;
    if (isPlaneMessage(frames)) {
      sighting.planeMessages++;
      return;
    }
    const message = readFrames(frames, this.#compat);
    if (typeof message === 'string') {
      this.#noteMalformed(message);
      return;
    }
    arena.reset();
    const batch = this.#reader.read(message.payload, message.arrivedAtMs);
    if (typeof batch === 'string') this.#noteMalformed(batch);
    else this.#takeBatch(batch, message.payload);
  }

  free(): void {
    this.#normalizer.free();
  }

  #takeBatch(batch: NativeBatch, payload: Uint8Array): void {
    const sighting = this.#sighting;
    sighting.batches++;
    const { ranks, groups } = sighting;
    if (ranks.has(batch.dpRank) || ranks.size < MAX_RANKS) {
      ranks.set(batch.dpRank, (ranks.get(batch.dpRank) ?? 0) + 1);
    }
    const skewMs = clockSkewMs(payload);
    if (skewMs !== null && Math.abs(skewMs) < Math.abs(sighting.skewMs ?? Number.MAX_VALUE)) {
      sighting.skewMs = skewMs;
    }
    for (const { groupIdx, specKind } of batch.events) {
      if (groups.size >= MAX_TEXTS || (groupIdx === null && specKind === null)) continue;
      if (specKind !== null) groups.add(`${groupIdx ?? '-'} ${specKind}`);
    }
    this.#normalizer.normalize(batch);
  }

  #noteMalformed(reason: string): void {
    const { malformed } = this.#sighting;
    malformed.set(reason, (malformed.get(reason) ?? 0) + 1);
  }
}

/** A batch begins with its time, seconds since 1970 as a float64; null where it does not. */
function clockSkewMs(payload: Uint8Array): number | null {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  if (view.byteLength < 10 || view.getUint8(1) !== 0xcb) return null;
  const seconds = view.getFloat64(2);
  return seconds > SECONDS_2001 && seconds < SECONDS_5138 ? seconds * 1000 - Date.now() : null;
}
