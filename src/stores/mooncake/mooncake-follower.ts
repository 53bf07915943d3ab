/**
 * MooncakeFollower: everything about one Mooncake master but its sockets: messages and links in, the
 * master asked, the state kept right.
 *
 * Joins    late: what was stored before the first message is asked for once the socket is linked, and
 *          again behind each new link, a little later, so that no message falls between.
 * Suspect  from a loss to the end of the reconciliation that it asks for. Where the master does not answer
 *          MAX_SUSPECT_FAILURES times in a row, what is suspect is given up.
 * Alone    without a master: after a loss everything is given up at once, and what was stored before stays
 *          unknown.
 */
import { messageOf } from '../../errors.ts';
import type { Warner } from '../../log.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import type { ObjectState } from '../objects/object-state.ts';
import type { StoreClock } from '../store-clock.ts';
import type { ReconciliationReading, SourceNotice } from '../store-source.ts';
import type { Master } from './master.ts';
import { MasterWatch } from './master-watch.ts';
import { type LossCause, MooncakeView } from './mooncake-view.ts';
import { Reconciler } from './reconciler.ts';
import { Reconciliation, SupersededError } from './reconciliation.ts';

/** A publisher takes note of a subscription with the next message that it sends after the link. */
const SETTLE_MS = 300;
const MAX_SUSPECT_FAILURES = 4;
/** At once: as fast as one question after the other goes, within reason. */
const FAST_KEYS_PER_SECOND = 200_000;
const SLOW_KEYS_PER_SECOND = 10_000;

export interface MooncakeFollowerOptions {
  readonly state: ObjectState;
  readonly metrics: SourceMetrics;
  readonly clock: StoreClock;
  readonly master: Master | null;
  /** 0: only at the start, after a loss and behind a new link. */
  readonly reconcileEveryMs: number;
  readonly maxHeldBytes: number;
  readonly warner: Pick<Warner, 'warn'>;
}

export class MooncakeFollower {
  readonly view: MooncakeView;
  readonly #options: MooncakeFollowerOptions;
  readonly #reconciler: Reconciler | null;
  readonly #watch: MasterWatch | null;
  #isLossUnhealed = false;
  #runs = 0;
  #lastRunMs: number | null = null;
  #lastRunAtMs: number | null = null;

  constructor(options: MooncakeFollowerOptions) {
    const { state, metrics, clock, master, reconcileEveryMs, maxHeldBytes } = options;
    this.#options = options;
    this.view = new MooncakeView({
      state,
      metrics,
      hasMaster: master !== null,
      maxHeldBytes,
      onLoss: (cause, lostMessages) => this.#takeLoss(cause, lostMessages),
      onMissed: () => this.#takeMissed(),
      onBackend: () => this.#reconciler?.request(),
    });
    this.#reconciler =
      master &&
      new Reconciler({
        clock,
        everyMs: reconcileEveryMs,
        run: (isSlow) => this.#reconcile(master, isSlow),
        onComplete: () => {
          this.view.isSuspect = false;
        },
        onFailure: (failures, error) => this.#takeFailure(failures, error),
      });
    this.#watch =
      master &&
      new MasterWatch({
        master,
        clock,
        lastSequence: () => this.view.lastSequence,
        lastEventId: () => this.view.lastEventId,
        restarts: () => metrics.restarts,
        onRestart: () => this.view.noteRestart(),
        onLostTail: () => this.view.noteLostTail(),
        onFault: (error) => this.#warnMaster(error),
      });
  }

  start(): void {
    this.#watch?.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#watch?.stop(), this.#reconciler?.stop()]);
  }

  takeLink(isConnected: boolean): void {
    if (!isConnected) return;
    this.view.noteLink();
    this.#reconciler?.requestBehindLink(SETTLE_MS);
  }

  reconciliation(endpoint: string): ReconciliationReading | null {
    if (this.#reconciler === null) return null;
    const atMs = this.#lastRunAtMs;
    const ageMs = atMs === null ? null : Math.round(this.#options.clock.nowMs() - atMs);
    return { endpoint, state: this.#reconciler.state, lastMs: this.#lastRunMs, ageMs };
  }

  notices(): SourceNotice[] {
    const notices: SourceNotice[] = [];
    if (this.view.isSuspect) {
      notices.push({
        message: 'Changes of the store were missed: what is held is compared with the master',
        remedy: 'Wait for the comparison to end; check the links to the master if that takes long',
      });
    } else if (this.#isLossUnhealed) {
      notices.push({
        message: 'Changes of the store were missed, and what was held before is given up',
        remedy: 'Give --mooncake-master, so that it can be asked for',
      });
    }
    return [...notices, ...(this.#watch?.notices() ?? [])];
  }

  #takeLoss(cause: LossCause, lostMessages: number): void {
    const fields = { source: 'mooncake', loss: cause, lostMessages };
    this.#options.warner.warn(`store_${cause}`, fields, 'changes of the store were missed');
    if (this.#reconciler === null) this.#isLossUnhealed = true;
    else this.#reconciler.request();
  }

  /** What the master has answered before may have changed since, unseen. */
  #takeMissed(): void {
    if (this.#reconciler === null) return;
    this.view.isSuspect = true;
    this.#reconciler.request();
  }

  async #reconcile(master: Master, isSlow: boolean): Promise<void> {
    const { state, metrics, clock } = this.#options;
    const reconciler = this.#reconciler as Reconciler;
    const startMs = clock.nowMs();
    const run = new Reconciliation({
      state,
      view: this.view,
      master,
      metrics,
      clock,
      runNumber: ++this.#runs,
      keysPerSecond: isSlow ? SLOW_KEYS_PER_SECOND : FAST_KEYS_PER_SECOND,
      givesUp: this.view.isSuspect,
      // A slow one makes way for one that somebody waits for.
      isStopped: () => reconciler.isStopped || (isSlow && reconciler.isWanted),
    });
    try {
      await run.run();
    } catch (error) {
      metrics.reconciliations[error instanceof SupersededError ? 'superseded' : 'failed']++;
      throw error;
    }
    metrics.reconciliations.complete++;
    this.#lastRunAtMs = clock.nowMs();
    this.#lastRunMs = Math.round(this.#lastRunAtMs - startMs);
  }

  #takeFailure(failures: number, error: unknown): void {
    this.#warnMaster(error);
    if (failures >= MAX_SUSPECT_FAILURES && this.view.isSuspect) this.view.invalidate();
  }

  #warnMaster(error: unknown): void {
    const fields = { source: 'mooncake', reason: messageOf(error) };
    this.#options.warner.warn('store_master', fields, 'the master of the store does not answer');
  }
}
