/**
 * ResyncMonitor: tells when routers should take a fresh dump of a source.
 *
 * Why      what a router loses while a query of its runs it never asks for again. Whether it did cannot be
 *          seen from here; a source that is announced anew brings every router to the same state.
 * Burst    queries with less than quietMs between them. If output was held or messages were lost during
 *          one, the source is announced anew once it is quiet.
 * Lost     are messages that this process gave up; and any on the way that left beside an answer, where a
 *          router asks for some that it missed: those it knows of, these it may have missed as well.
 * After    that every router asks for a dump, which is a burst again: there only a loss counts, and each
 *          further time in a row waits twice as long, so that a slow network is not kept busy with dumps.
 */
import type { OutputHold } from './query-service.ts';

export interface ResyncMonitorOptions {
  /** Messages that routers did not get, ever. */
  readonly lostMessages: () => number;
  readonly onResync: () => void;
  /** 0: never. */
  readonly quietMs?: number;
}

/** A hold that tells when output begins to wait for an answer, and what leaves beside one. */
type WatchedHold = Omit<OutputHold, 'begin'> & {
  begin(onHeld: () => void, onPassed: () => void): (applyMs: number) => void;
};

const QUIET_MS = 30_000;
const MAX_DOUBLINGS = 6;

export class ResyncMonitor {
  readonly #options: ResyncMonitorOptions;
  readonly #quietMs: number;
  #timer: NodeJS.Timeout | null = null;
  #lostBefore = 0;
  #wasHeld = false;
  #wasOverrun = false;
  #wasRepair = false;
  #hasPassed = false;
  /** Times in a row that the queries after a re-sync met losses too. */
  #doublings = 0;
  /** The next burst is the one that a re-sync has caused. */
  #isAfterResync = false;
  #isStopped = false;

  constructor(options: ResyncMonitorOptions) {
    this.#options = options;
    this.#quietMs = options.quietMs ?? QUIET_MS;
  }

  /** A query of the source is answered. */
  noteQuery(): void {
    if (this.#timer === null) this.#beginBurst();
    else this.#timer.refresh();
  }

  /** Output waits for its answer. */
  noteHeld(): void {
    this.#wasHeld = true;
  }

  /** A router asks for what it missed. */
  noteRepair(): void {
    this.#wasRepair = true;
  }

  /** A message left beside an answer. */
  notePassed(): void {
    this.#hasPassed = true;
  }

  /** `hold`, with its answers, what they keep waiting and what passes beside them noted. */
  watching(hold: WatchedHold): OutputHold {
    return {
      get isHolding(): boolean {
        return hold.isHolding;
      },
      idle: () => hold.idle(),
      begin: (isRepair) => {
        this.noteQuery();
        if (isRepair) this.noteRepair();
        return hold.begin(
          () => this.noteHeld(),
          () => this.notePassed(),
        );
      },
    };
  }

  /** Output went on before its answer was through. */
  noteOverrun(): void {
    this.#wasOverrun = true;
    // An answer may take for longer than the burst that it belongs to.
    if (this.#timer === null) this.#beginBurst();
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #beginBurst(): void {
    if (this.#quietMs === 0 || this.#isStopped) return;
    this.#lostBefore = this.#options.lostMessages();
    this.#timer = setTimeout(() => this.#endBurst(), this.#quietMs * 2 ** this.#doublings);
    this.#timer.unref();
  }

  #endBurst(): void {
    const mayHaveLost = this.#wasRepair && this.#hasPassed;
    const hasLost = this.#options.lostMessages() > this.#lostBefore;
    const wasLossy = this.#wasOverrun || hasLost || mayHaveLost;
    const isNeeded = wasLossy || (this.#wasHeld && !this.#isAfterResync);
    const isRepeated = isNeeded && this.#isAfterResync;
    this.#doublings = isRepeated ? Math.min(this.#doublings + 1, MAX_DOUBLINGS) : 0;
    this.#isAfterResync = isNeeded;
    this.#timer = null;
    this.#wasHeld = false;
    this.#wasOverrun = false;
    this.#wasRepair = false;
    this.#hasPassed = false;
    if (isNeeded) this.#options.onResync();
  }
}
