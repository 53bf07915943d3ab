/**
 * EngineStream: a sequencer at work. What arrives goes in with its time, and what the sequencer wants is
 * done: batches are passed on, replays asked for, gaps and restarts told, in its order.
 *
 * Owns     one timer for the sequencer's deadlines; a batch in its turn costs neither timer nor list.
 * Ports    the transport puts requests, the clock tells the time: both can be played.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { EngineMessage } from './frames.ts';
import { Sequencer, type SequencerOptions } from './sequencer.ts';
import type { SequencerAction } from './sequencer-action.ts';

/** Puts replay requests to one engine. */
export interface ReplayTransport {
  /** The answer goes to the stream, under this id. */
  ask(id: number, start: bigint): void;
  /** The answer is not wanted any more; it may still come. */
  drop(id: number): void;
}

/** Monotonic milliseconds. */
export interface StreamClock {
  nowMs(): number;
  /** Returns what takes it back. */
  schedule(callback: () => void, delayMs: number): () => void;
}

export interface StreamDeps {
  readonly options: SequencerOptions;
  readonly metrics: RelayMetrics;
  readonly transport: ReplayTransport;
  readonly clock?: StreamClock;
  /** Each batch once, in order. */
  readonly onMessage: (message: EngineMessage) => void;
  /** Between batches, where they belong; none may throw. */
  readonly onGap: (lostBatches: number, clears: boolean) => void;
  readonly onRestart: (clears: boolean) => void;
}

/** However long the first replay takes, a stream counts as caught up after that. */
const MAX_CATCH_UP_MS = 10_000;

const SYSTEM_CLOCK: StreamClock = {
  nowMs: () => performance.now(),
  schedule: (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

export class EngineStream {
  readonly #deps: StreamDeps;
  readonly #clock: StreamClock;
  readonly #sequencer: Sequencer;
  readonly #actions: SequencerAction[] = [];
  #isActing = false;
  #isFinished = false;
  #cancelTimer: (() => void) | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #firstLinkMs: number | null = null;

  constructor(deps: StreamDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? SYSTEM_CLOCK;
    this.#sequencer = new Sequencer(deps.options, deps.metrics);
  }

  get liveSequence(): bigint | null {
    return this.#sequencer.liveSequence;
  }

  get emittedSequence(): bigint | null {
    return this.#sequencer.emittedSequence;
  }

  get heldBatches(): number {
    return this.#sequencer.heldBatches;
  }

  get replay(): 'none' | 'idle' | 'running' {
    if (!this.#deps.options.canAsk) return 'none';
    return this.#sequencer.isAsking ? 'running' : 'idle';
  }

  /** The first replay has ended, failed or taken too long. */
  get isCaughtUp(): boolean {
    if (this.#sequencer.isCaughtUp) return true;
    if (this.#firstLinkMs === null) return false;
    return this.#clock.nowMs() - this.#firstLinkMs >= MAX_CATCH_UP_MS;
  }

  takeLive(message: EngineMessage): void {
    if (this.#sequencer.takeLive(message, this.#actions)) {
      this.#deps.onMessage(message);
      if (this.#cancelTimer === null && this.#deps.options.canAsk) this.#setTimer();
    } else {
      this.#act();
    }
  }

  takeReplayed(id: number, message: EngineMessage): void {
    this.#sequencer.takeReplayed(id, message, this.#actions);
    this.#act();
  }

  takeReplayEnd(id: number): void {
    this.#sequencer.takeReplayEnd(id, this.#clock.nowMs(), this.#actions);
    this.#act();
  }

  takeReplayFailure(id: number): void {
    if (this.#isFinished) return;
    this.#sequencer.takeReplayFailure(id, this.#clock.nowMs(), this.#actions);
    this.#act();
  }

  takeLink(isLinked: boolean): void {
    if (this.#isFinished) return;
    const nowMs = this.#clock.nowMs();
    if (isLinked) this.#firstLinkMs ??= nowMs;
    this.#sequencer.takeLink(isLinked, nowMs, this.#actions);
    this.#act();
  }

  /** Passes on what is held; links and answers that end behind it change nothing any more. */
  finish(): void {
    this.#sequencer.finish(this.#actions);
    this.#act();
    this.#isFinished = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** A port that answers within the call adds to the list, which is then worked off here all the same. */
  #act(): void {
    if (this.#isActing) return;
    this.#isActing = true;
    for (let index = 0; index < this.#actions.length; index++) {
      const action = this.#actions[index];
      if (action !== undefined) this.#do(action);
    }
    this.#actions.length = 0;
    this.#isActing = false;
    this.#setTimer();
  }

  #do(action: SequencerAction): void {
    const { transport, onMessage, onGap, onRestart } = this.#deps;
    switch (action.kind) {
      case 'emit':
        onMessage(action.message);
        break;
      case 'gap':
        onGap(action.lostBatches, action.clears);
        break;
      case 'restart':
        onRestart(action.clears);
        break;
      case 'ask':
        transport.ask(action.id, action.start);
        break;
      case 'drop':
        transport.drop(action.id);
        break;
    }
  }

  /** A deadline may move away while the timer runs: it then fires for nothing, and is set again. */
  #setTimer(): void {
    const { deadlineMs } = this.#sequencer;
    const hasDeadline = deadlineMs !== Number.POSITIVE_INFINITY;
    if (this.#cancelTimer !== null && hasDeadline && this.#timerAtMs <= deadlineMs) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (!hasDeadline) return;
    this.#timerAtMs = deadlineMs;
    const delayMs = Math.max(0, Math.ceil(deadlineMs - this.#clock.nowMs()));
    this.#cancelTimer = this.#clock.schedule(() => {
      this.#cancelTimer = null;
      this.#sequencer.tick(this.#clock.nowMs(), this.#actions);
      this.#act();
    }, delayMs);
  }
}
