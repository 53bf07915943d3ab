/**
 * CoordinatorSource: the batches of LMCache's MP servers beside the engine: the endpoint that they post to, what
 * they report, and the coordinator behind, where there is one.
 */
import type { Warner } from '../../../log.ts';
import { CoordinatorMetrics } from '../../../metrics/coordinator-metrics.ts';
import { SourceMetrics } from '../../../metrics/source-metrics.ts';
import type { ObjectScope } from '../../objects/object-change.ts';
import type { ObjectState } from '../../objects/object-state.ts';
import { SYSTEM_STORE_CLOCK } from '../../store-clock.ts';
import type { SourceNotice, SourceReading, StoreSource } from '../../store-source.ts';
import { isOfBatches } from '../object-names.ts';
import { CoordinatorForward } from './coordinator-forward.ts';
import { CoordinatorServer } from './coordinator-server.ts';
import { CoordinatorView } from './coordinator-view.ts';
import { ReachableChunks, type ReachableChunksOptions } from './reachable-chunks.ts';

const LMCACHE_COORDINATOR = 'lmcache_coordinator';

const SWEEP_MS = 5000;
/** How long after a loss that is told. */
const LOSS_SHOWN_MS = 300_000;
const FORWARD_TIMEOUT_MS = 60_000;
const FORWARD_WAITING_BYTES = 64 << 20;
const FORWARD_STOP_MS = 1000;

export interface CoordinatorSourceOptions {
  readonly host: string;
  readonly port: number;
  /** Of the coordinator behind, without a trailing slash; null: there is none. */
  readonly forward: string | null;
  readonly maxBodyBytes: number;
  readonly maxHolders: number;
  readonly instanceTimeoutSeconds: number;
  readonly state: ObjectState;
  /** Whose chunks are placed, and where; null: objects alone. */
  readonly reach: ReachableChunksOptions | null;
  readonly warner: Pick<Warner, 'warn'>;
}

export class CoordinatorSource implements StoreSource {
  readonly name: string = LMCACHE_COORDINATOR;
  readonly metrics: SourceMetrics = new SourceMetrics();
  readonly counts: CoordinatorMetrics = new CoordinatorMetrics();
  readonly view: CoordinatorView;
  /** Chunks within reach of the worker are placed at the routers. */
  readonly places: boolean;
  readonly forward: CoordinatorForward | null;
  readonly #reachable: ReachableChunks | null;
  readonly #server: CoordinatorServer;
  #cancelSweep: (() => void) | null = null;

  constructor(options: CoordinatorSourceOptions) {
    const { host, port, maxBodyBytes, maxHolders, state, reach, warner } = options;
    this.places = reach !== null;
    this.#reachable = reach && new ReachableChunks(reach);
    const { metrics, counts } = this;
    this.view = new CoordinatorView({
      state,
      metrics,
      counts,
      nowMs: () => SYSTEM_STORE_CLOCK.nowMs(),
      maxHolders,
      chunks: this.#reachable,
      instanceTimeoutMs: options.instanceTimeoutSeconds * 1000,
      onLoss: (instanceId, lostBatches) =>
        warner.warn(
          'lmcache_gap',
          { source: this.name, instanceId, lostBatches },
          'batches of an LMCache server are missing: what it holds is given up',
        ),
    });
    this.forward =
      options.forward === null
        ? null
        : new CoordinatorForward({
            url: options.forward,
            counts,
            timeoutMs: FORWARD_TIMEOUT_MS,
            maxWaitingBytes: FORWARD_WAITING_BYTES,
            onFailure: (outcome, reason) =>
              warner.warn(
                'lmcache_forward',
                { source: this.name, outcome, reason },
                'the coordinator behind did not answer',
              ),
          });
    this.#server = new CoordinatorServer({
      host,
      port,
      maxBodyBytes,
      view: this.view,
      forward: this.forward,
      metrics,
      counts,
      onRefusal: (refusal, reason) =>
        warner.warn(
          'lmcache_refused',
          { source: this.name, refusal, reason },
          'a request to the coordinator endpoint was refused, or not understood',
        ),
    });
  }

  get isConnected(): boolean {
    return this.#server.isListening;
  }

  /** What may be wrong is given up at once, but it can take routers some turns to be told of it. */
  get isSuspect(): boolean {
    return this.#reachable?.isBehind === true;
  }

  owns(scope: ObjectScope): boolean {
    return isOfBatches(scope);
  }

  async start(): Promise<void> {
    await this.#server.start();
    this.#sweep();
  }

  async stop(): Promise<void> {
    this.#cancelSweep?.();
    this.#reachable?.stop();
    await Promise.all([this.forward?.stop(FORWARD_STOP_MS), this.#server.stop()]);
  }

  reading(): SourceReading {
    const atMs = this.#server.lastPostAtMs;
    return {
      endpoint: this.#server.url,
      lastSequence: null,
      lastMessageAgeMs: atMs === null ? null : Math.round(performance.now() - atMs),
      heldMessages: 0,
      reconciliation: null,
      notices: this.#notices(),
    };
  }

  #sweep(): void {
    this.view.sweep();
    const { instances } = this.view;
    this.#server.standIn.members.sweep((id) => instances.find(id)?.isMember === true);
    this.#cancelSweep = SYSTEM_STORE_CLOCK.schedule(() => this.#sweep(), SWEEP_MS);
  }

  #notices(): SourceNotice[] {
    const { url } = this.#server;
    const { lastLossMs, instances } = this.view;
    const notices: SourceNotice[] = [];
    if (this.#server.lastPostAtMs === null) {
      notices.push({
        message: 'No LMCache server has posted an event yet',
        remedy: `Start it with --coordinator-url ${url} and --coordinator-event-reporting`,
      });
    }
    if (lastLossMs !== null && SYSTEM_STORE_CLOCK.nowMs() - lastLossMs < LOSS_SHOWN_MS) {
      notices.push({
        message: 'Batches of an LMCache server were missed, and what it held before is given up',
        remedy: 'Look at its log for posts that failed, and at the network between',
      });
    }
    if (instances.account.untracked > 0) {
      notices.push({
        message: `${instances.account.untracked} keys of LMCache found no room and are not followed`,
        remedy: 'Raise --lmcache-max-keys above the number of keys that all tiers can hold',
      });
    }
    if (this.counts.refusals.loop > 0) {
      notices.push({
        message: 'Requests that were handed to the coordinator behind have come back here',
        remedy: 'Give --lmcache-coordinator-forward the address of lmcache coordinator itself',
      });
    }
    if (this.forward !== null && this.forward.failures > 0) {
      notices.push({
        message: 'The coordinator behind does not answer: LMCache servers see that as it is',
        remedy: 'Check that it runs at --lmcache-coordinator-forward',
      });
    }
    return notices;
  }
}
