/**
 * Sequencer: one engine's batches, each once and in the order of their numbers.
 *
 * Marks    the highest number seen live (EngineLife), and the next one to leave (Backlog).
 * Holes    what came behind one is held, within bounds, while a replay is asked for. The first batch of
 *          an answer is never dropped on the way, so what lies before it is lost for good; a jump within
 *          one may be the engine's send path, so it is asked for again.
 * Links    behind a lost one nothing leaves until the first batch of an inclusive answer has shown whether
 *          the engine is still the one that was heard before.
 * Pure     no clock, socket or timer: time and answers come in, effects go out as actions, in order.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { Backlog, type BacklogOptions } from './backlog.ts';
import { EngineLife } from './engine-life.ts';
import { type EngineMessage, ownMessage } from './frames.ts';
import { type AskOptions, ReplayAsks } from './replay-asks.ts';
import type { SequencerAction } from './sequencer-action.ts';

export interface SequencerOptions extends BacklogOptions, AskOptions {
  /** Whether there is anybody to ask for a replay. */
  readonly canAsk: boolean;
  readonly clearsOnRestart: boolean;
}

/** How long a stream is quiet before a lost last batch is looked for. */
const QUIET_MS = 2000;
/** How long a live batch that a replay has overtaken may be on its way after the last one that came. */
const LATE_LIVE_MS = 500;

export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #metrics: RelayMetrics;
  readonly #backlog: Backlog;
  readonly #asks: ReplayAsks;
  readonly #life = new EngineLife();
  #wasLinked = false;
  /** An ask is due though no number is known to be missing. */
  #isAskDue = false;
  /** Nothing is held, missing or in doubt: all marks are one. */
  #isFlowing = true;
  #hasNews = false;
  #lastArrivalMs = 0;
  /** The first replay has ended or failed, or there is none. */
  isCaughtUp: boolean;

  constructor(options: SequencerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#backlog = new Backlog(options, metrics);
    this.#asks = new ReplayAsks(options, metrics);
    this.isCaughtUp = !options.canAsk;
  }

  /** Highest number seen live in this life of the engine; null before the first. */
  get liveSequence(): bigint | null {
    return this.#life.live;
  }

  /** Number of the batch that left last in this life of the engine; null before the first. */
  get emittedSequence(): bigint | null {
    return this.#backlog.last?.sequence ?? null;
  }

  get heldBatches(): number {
    return this.#backlog.heldBatches;
  }

  get isAsking(): boolean {
    return this.#asks.current !== null;
  }

  /** When tick() has something to do, ms; Infinity where only a message or a link can change anything. */
  get deadlineMs(): number {
    if (this.isAsking) return this.#asks.deadlineMs;
    if (this.#needsAsk) return this.#asks.notBeforeMs;
    if (this.#awaitsLive) return this.#lastArrivalMs + LATE_LIVE_MS;
    if (!this.#life.isLinked || !this.#hasNews) return Number.POSITIVE_INFINITY;
    return Math.max(this.#lastArrivalMs + QUIET_MS, this.#asks.coolUntilMs);
  }

  /** True: the batch is the next one and leaves at once. Else what is to be done is added to `out`. */
  takeLive(message: EngineMessage, out: SequencerAction[]): boolean {
    this.#lastArrivalMs = message.arrivedAtMs;
    this.#hasNews = true;
    if (this.#isFlowing && message.sequence === this.#backlog.next) {
      this.#life.noteLive(message.sequence);
      this.#backlog.pass(message);
      return true;
    }
    this.#takeUnexpected(ownMessage(message), out);
    return false;
  }

  #takeUnexpected(message: EngineMessage, out: SequencerAction[]): void {
    const backlog = this.#backlog;
    backlog.keepLast();
    const isOther = this.#life.isNew(message, backlog.next) || backlog.conflicts(message);
    if (isOther) this.#restart(out, false);
    this.#life.noteLive(message.sequence);
    backlog.take(message, !this.#life.isInDoubt, out);
    this.#advance(message.arrivedAtMs, out);
  }

  /** A batch of the answer to the ask `id`. */
  takeReplayed(id: number, message: EngineMessage, out: SequencerAction[]): void {
    const { sequence, arrivedAtMs } = message;
    const ask = this.#asks.wanted(id);
    if (ask === null) return;
    ask.lastMessageMs = arrivedAtMs;
    this.#lastArrivalMs = arrivedAtMs;
    const isFirst = ask.first === null && sequence >= ask.start;
    if (isFirst) ask.first = sequence;
    this.#hasNews = true;
    if ((isFirst && this.#life.contradicts(message)) || this.#backlog.conflicts(message)) {
      this.#restart(out, true);
    } else {
      if (isFirst) this.#beginAnswer(ask.start, sequence);
      this.#life.noteReplayed(message);
      this.#backlog.take(message, !this.#life.isInDoubt, out);
    }
    this.#advance(arrivedAtMs, out);
  }

  /** The answer is complete, as far as the engine has kept its batches. */
  takeReplayEnd(id: number, nowMs: number, out: SequencerAction[]): void {
    const ask = this.#asks.wanted(id);
    if (ask === null) return;
    this.#asks.end(nowMs);
    this.#isAskDue = ask.first === null && this.#life.noteNothingKept();
    this.isCaughtUp = true;
    if (ask.first === null && !this.#isAskDue && ask.unseen > ask.next) {
      // What had been seen to be missing was asked for, and none of it is kept.
      this.#life.anchor = null;
      this.#backlog.skipTo(ask.unseen, out);
    }
    if (!this.#life.isInDoubt) this.#backlog.drain(out);
    if (!this.#backlog.isOpen) this.#asks.succeed();
    const isWhole = !this.#backlog.isOpen && this.#metrics.lostBatches === ask.lostBatches;
    this.#metrics.engineReplays[isWhole ? 'complete' : 'partial']++;
    this.#advance(nowMs, out);
  }

  /** The ask cannot be put, or its answer broke off. */
  takeReplayFailure(id: number, nowMs: number, out: SequencerAction[]): void {
    const ask = this.#asks.current;
    if (ask?.id !== id) return;
    this.#dropAsk(out);
    if (this.#asks.fail(this.#backlog.next > ask.next, nowMs)) {
      this.isCaughtUp = true;
      this.#giveUp(out);
    }
    this.#advance(nowMs, out);
  }

  /** The link to the engine's event socket stands, or is lost. */
  takeLink(isLinked: boolean, nowMs: number, out: SequencerAction[]): void {
    if (!this.#options.canAsk) return;
    this.#life.takeLink(isLinked);
    if (!isLinked || this.#wasLinked) {
      this.#life.doubt(this.#backlog.witness(), this.#backlog.unseen);
      // An answer under way may be that of another life.
      this.#dropAsk(out);
      this.#asks.reset();
    }
    this.#isAskDue = isLinked;
    this.#wasLinked ||= isLinked;
    this.#advance(nowMs, out);
  }

  /** To be called when the deadline has come; earlier it does nothing. */
  tick(nowMs: number, out: SequencerAction[]): void {
    if (nowMs < this.deadlineMs) return;
    if (this.#asks.current !== null) {
      this.takeReplayFailure(this.#asks.current.id, nowMs, out);
      return;
    }
    const awaitsLive = this.#awaitsLive;
    if (awaitsLive) this.#backlog.passOver(null, out);
    else if (!this.#needsAsk) this.#hasNews = false;
    this.#isAskDue ||= !awaitsLive;
    this.#advance(nowMs, out);
  }

  /** Nothing more will come: what is held leaves, what is missing is lost. */
  finish(out: SequencerAction[]): void {
    this.#dropAsk(out);
    this.#giveUp(out);
  }

  get #needsAsk(): boolean {
    return (this.#backlog.isOpen && !this.#awaitsLive) || this.#isAskDue;
  }

  get #awaitsLive(): boolean {
    return this.#backlog.awaitsLive(this.#life.liveOnLink);
  }

  #advance(nowMs: number, out: SequencerAction[]): void {
    if (!this.#life.isInDoubt) this.#backlog.passOver(this.#life.liveOnLink, out);
    if (this.#needsAsk && !this.isAsking) {
      const { coolUntilMs, notBeforeMs, isExhausted } = this.#asks;
      if (!this.#options.canAsk || nowMs < coolUntilMs || isExhausted) this.#giveUp(out);
      else if (nowMs >= notBeforeMs) this.#ask(nowMs, out);
    }
    this.#isFlowing = this.#life.anchor === null && !this.#backlog.isOpen;
  }

  #ask(nowMs: number, out: SequencerAction[]): void {
    // Without a link, who answers can be another life each time.
    if (!this.#life.isLinked) this.#life.doubt(this.#backlog.witness(), this.#backlog.unseen);
    const start = this.#life.askStart ?? this.#backlog.next;
    const { id } = this.#asks.begin(start, this.#backlog, this.#metrics.lostBatches, nowMs);
    out.push({ kind: 'ask', id, start });
  }

  /** An answer brings its first batch for certain: what lies before it is not kept any more. */
  #beginAnswer(start: bigint, first: bigint): void {
    this.#life.anchor = null;
    this.#backlog.noteNumber(first);
    if (start <= this.#backlog.next) this.#backlog.goneBelow = first;
  }

  /** The stream goes on without what is missing, and without an answer to what is in doubt. */
  #giveUp(out: SequencerAction[]): void {
    this.#life.anchor = null;
    this.#isAskDue = false;
    this.#asks.succeed();
    this.#backlog.skipTo(this.#backlog.unseen, out);
  }

  #dropAsk(out: SequencerAction[]): void {
    const ask = this.#asks.drop();
    if (ask !== null) out.push({ kind: 'drop', id: ask.id });
  }

  #restart(out: SequencerAction[], isByReplay: boolean): void {
    const backlog = this.#backlog;
    const clears = this.#options.clearsOnRestart && backlog.hasEmitted;
    // One clear is enough for what is lost with the old life as well.
    if (clears) backlog.hasEmitted = false;
    this.#metrics.engineRestarts++;
    this.#dropAsk(out);
    this.#asks.reset();
    backlog.restart(isByReplay ? this.#life.oldNumbersEnd(backlog.unseen) : backlog.unseen, out);
    this.#life.restart();
    // Only a replay can show where the new life is: what came live may be of either.
    this.#isAskDue = isByReplay;
    out.push({ kind: 'restart', clears });
  }
}
