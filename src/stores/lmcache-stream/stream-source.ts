/**
 * LmcacheStreamSource: the KV event stream of LMCache's MP server, one link and one subscription a model.
 */
import type { Warner } from '../../log.ts';
import { SourceMetrics } from '../../metrics/source-metrics.ts';
import { LMCACHE } from '../lmcache/object-names.ts';
import type { ObjectScope } from '../objects/object-change.ts';
import type { ObjectState } from '../objects/object-state.ts';
import type { ChunkPlacements } from '../placement/chunk-placements.ts';
import { SYSTEM_STORE_CLOCK } from '../store-clock.ts';
import type { SourceNotice, SourceReading, StoreSource } from '../store-source.ts';
import { streamNotices } from './stream-notices.ts';
import { StreamSocket } from './stream-socket.ts';
import { LMCACHE_STREAM, STREAM_BACKEND, StreamView } from './stream-view.ts';
import { StreamSubscription } from './subscription.ts';

export interface LmcacheStreamOptions {
  /** The MP server's one request port. */
  readonly endpoint: string;
  readonly modelNames: readonly string[];
  /** Of the first model; each further one has the next. A server has one subscription an instance. */
  readonly instanceId: number;
  readonly pageRecords: number;
  readonly state: ObjectState;
  /** Null where no chunks are placed. */
  readonly placements: ChunkPlacements | null;
  readonly warner: Pick<Warner, 'warn'>;
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (portion: () => void) => void;
  readonly onLink: (isConnected: boolean) => void;
}

interface ModelStream {
  readonly modelName: string;
  readonly view: StreamView;
  readonly socket: StreamSocket;
  readonly subscription: StreamSubscription;
}

export class LmcacheStreamSource implements StoreSource {
  readonly name: string = LMCACHE_STREAM;
  readonly metrics: SourceMetrics = new SourceMetrics();
  readonly #options: LmcacheStreamOptions;
  readonly #streams: readonly ModelStream[];

  constructor(options: LmcacheStreamOptions) {
    this.#options = options;
    this.#streams = options.modelNames.map((modelName, index) => this.#create(modelName, index));
  }

  get isConnected(): boolean {
    return this.#streams.every(({ socket }) => socket.isConnected);
  }

  /** Evictions are missed while there is no subscription, and routers may not have been told yet what was given up. */
  get isSuspect(): boolean {
    return this.#streams.some(
      ({ subscription, view }) =>
        view.isWithdrawing || (subscription.state !== 'live' && view.objects > 0),
    );
  }

  owns({ source, backendId }: ObjectScope): boolean {
    return source === LMCACHE && backendId === STREAM_BACKEND;
  }

  start(): void {
    for (const { socket } of this.#streams) socket.start();
  }

  async stop(): Promise<void> {
    for (const { subscription } of this.#streams) subscription.stop();
    await Promise.all(this.#streams.map(({ socket }) => socket.stop()));
  }

  reading(): SourceReading {
    const cursors = this.#streams.map(({ view }) => view.cursor);
    const arrivals = this.#streams.flatMap(({ socket }) => socket.lastMessageAtMs ?? []);
    const cursor = Math.max(...cursors);
    const { endpoint } = this.#options;
    return {
      endpoint,
      lastSequence: arrivals.length === 0 ? null : BigInt(cursor),
      lastMessageAgeMs:
        arrivals.length === 0 ? null : Math.round(performance.now() - Math.max(...arrivals)),
      heldMessages: 0,
      reconciliation: null,
      notices: this.#notices(),
    };
  }

  #create(modelName: string, index: number): ModelStream {
    const { endpoint, instanceId, pageRecords, state, placements, warner, defer, onLink } =
      this.#options;
    const { metrics } = this;
    const warn = (name: string, fields: object, message: string): void =>
      warner.warn(`lmcache_stream_${name}`, { endpoint, modelName, ...fields }, message);
    const view = new StreamView({
      modelName,
      state,
      metrics,
      defer,
      feed: placements?.feed(true) ?? null,
      onLoss: (cause) =>
        warn(cause, {}, 'changes of LMCache were missed, what was held is given up'),
    });
    const subscription: StreamSubscription = new StreamSubscription({
      view,
      metrics,
      clock: SYSTEM_STORE_CLOCK,
      instanceId: instanceId + index,
      modelName,
      pageRecords,
      send: (frames) => socket.send(frames),
      onFailure: (reason) => warn('failure', { reason }, 'no subscription to events of LMCache'),
    });
    const socket = new StreamSocket({
      endpoint,
      metrics,
      onMessage: (frames) => subscription.take(frames),
      onLink: (isConnected) => {
        if (index === 0) onLink(isConnected);
        subscription.takeLink(isConnected);
      },
    });
    return { modelName, view, socket, subscription };
  }

  #notices(): SourceNotice[] {
    return streamNotices(
      this.#streams.map(({ modelName, subscription: { state } }) => ({ modelName, state })),
    );
  }
}
