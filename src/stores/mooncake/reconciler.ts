/**
 * Reconciler: when the master is asked.
 *
 * At once    on request; one run at a time, and a request during one brings another behind it. A run that
 *            waits for its time is hastened by a new link alone, however many losses there are.
 * Then       `everyMs` after the last run that came to its end (0: never), as a slow one.
 * Failed     runs are tried again, after a pause that doubles from 0.5 s to 30 s, for ever.
 */
import type { StoreClock } from '../store-clock.ts';
import { MasterError } from './master.ts';
import { SupersededError } from './reconciliation.ts';

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;
/** Between two runs that losses ask for, however many there are. */
const MIN_PAUSE_MS = 1000;

export interface ReconcilerOptions {
  readonly clock: StoreClock;
  readonly everyMs: number;
  /** Compares all that is held; `isSlow` where nobody waits for it. */
  readonly run: (isSlow: boolean) => Promise<void>;
  readonly onComplete: () => void;
  /** `failures` in a row. */
  readonly onFailure: (failures: number, error: unknown) => void;
}

export class Reconciler {
  readonly #options: ReconcilerOptions;
  #isRunning = false;
  #isWanted = false;
  #isStopped = false;
  /** A run is scheduled that somebody waits for. */
  #isDue = false;
  #failures = 0;
  #cancelTimer: (() => void) | null = null;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  get state(): 'idle' | 'running' | 'waiting' {
    if (this.#isRunning) return 'running';
    return this.#isDue ? 'waiting' : 'idle';
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Another run was asked for while one is under way. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Soon, or in its time where a run waits for it. */
  request(): void {
    if (this.#isRunning) this.#isWanted = true;
    else if (!this.#isDue) this.#schedule(0, false);
  }

  /** In `delayMs`, or soon after the run under way: a master that links again may answer again. */
  requestBehindLink(delayMs: number): void {
    if (this.#isRunning) this.#isWanted = true;
    else this.#schedule(delayMs, false);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    await this.#ended;
  }

  #schedule(delayMs: number, isSlow: boolean): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#isStopped) return;
    this.#isDue = !isSlow;
    this.#cancelTimer = this.#options.clock.schedule(() => {
      this.#cancelTimer = null;
      this.#isRunning = true;
      this.#ended = this.#run(isSlow);
    }, delayMs);
  }

  async #run(isSlow: boolean): Promise<void> {
    this.#isWanted = false;
    let error: unknown = null;
    try {
      await this.#options.run(isSlow);
    } catch (reason) {
      // Anything else is a defect, and ends the process.
      if (!(reason instanceof MasterError || reason instanceof SupersededError)) throw reason;
      error = reason;
    }
    this.#isRunning = false;
    if (this.#isStopped) return;
    if (error === null) this.#complete();
    else this.#fail(error);
  }

  #complete(): void {
    const { everyMs, onComplete } = this.#options;
    this.#failures = 0;
    this.#isDue = false;
    if (this.#isWanted) {
      this.#schedule(MIN_PAUSE_MS, false);
      return;
    }
    onComplete();
    if (everyMs > 0) this.#schedule(everyMs, true);
  }

  #fail(error: unknown): void {
    if (error instanceof SupersededError) {
      // Nobody's fault: what made it pointless is a reason to begin anew.
      this.#schedule(FIRST_RETRY_MS, false);
      return;
    }
    this.#options.onFailure(++this.#failures, error);
    const exponent = Math.min(this.#failures - 1, 16);
    this.#schedule(Math.min(FIRST_RETRY_MS * 2 ** exponent, MAX_RETRY_MS), false);
  }
}
