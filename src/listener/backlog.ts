/**
 * Backlog: which batch leaves next, which came before their turn, and which are lost for good.
 *
 * Out      batches by rising number, each once; every number that is passed over counts as lost, once.
 * Keeps    the batch that left last, to tell lives apart: of one that passed, a view, until keepLast() is called.
 * Bounds   those of HeldBatches; a batch that finds no room counts as missing, as if it had not come.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { type EngineMessage, ownMessage } from './frames.ts';
import { HeldBatches, type HoldBounds } from './held-batches.ts';
import { countBetween } from './sequence-count.ts';
import type { SequencerAction } from './sequencer-action.ts';

export interface BacklogOptions extends HoldBounds {
  /** Whether what is lost for good clears the rank. */
  readonly clearsOnGap: boolean;
}

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #metrics: RelayMetrics;
  readonly #held: HeldBatches;
  /** Number of the next batch to leave. */
  next = 0n;
  /** Above all numbers seen so far, live or replayed. */
  unseen = 0n;
  /** The engine keeps no batch below this number any more. */
  goneBelow = 0n;
  /** What left last; null before the first batch of a life. */
  last: EngineMessage | null = null;
  /** Something has left since the last clear that came from here. */
  hasEmitted = false;
  #isLastKept = false;

  constructor(options: BacklogOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#held = new HeldBatches(options);
  }

  get heldBatches(): number {
    return this.#held.size;
  }

  /** A batch that shows whose numbers these are, to be kept: what left last, or what is held first. */
  witness(): EngineMessage | null {
    this.keepLast();
    return this.last ?? this.#held.first;
  }

  /** To be called before another message takes the place of the one that left last, without leaving itself. */
  keepLast(): void {
    if (this.last !== null && !this.#isLastKept) this.last = ownMessage(this.last);
    this.#isLastKept = true;
  }

  /** Another batch is held under this number: one of the two is of another life. */
  conflicts({ sequence, payload }: EngineMessage): boolean {
    const held = this.#held.get(sequence);
    return held !== null && Buffer.compare(held.payload, payload) !== 0;
  }

  /** Numbers were seen that have not left. */
  get isOpen(): boolean {
    return this.unseen > this.next;
  }

  /** The next batch, with nothing seen before it: it leaves at once. */
  pass(message: EngineMessage): void {
    this.next = message.sequence + 1n;
    this.unseen = this.next;
    this.last = message;
    this.#isLastKept = false;
    this.hasEmitted = true;
  }

  /** Numbers below `sequence` exist: those that have not been seen are missing. */
  noteNumber(sequence: bigint): void {
    this.#metrics.missingBatches += countBetween(this.unseen, sequence);
    if (sequence > this.unseen) this.unseen = sequence;
  }

  /** Emits the batch, whose bytes are its own, where it is its turn and nothing keeps it, else holds it; a copy is dropped. */
  take(message: EngineMessage, mayLeave: boolean, out: SequencerAction[]): void {
    const { sequence } = message;
    this.noteNumber(sequence);
    const isNew = sequence === this.unseen;
    if (isNew) this.unseen = sequence + 1n;
    if (sequence < this.next) {
      this.#metrics.duplicateBatches++;
      return;
    }
    if (sequence === this.next && mayLeave) {
      this.#emit(message, out);
      return;
    }
    const outcome = this.#held.add(message);
    if (outcome === 'repeated') this.#metrics.duplicateBatches++;
    if (outcome !== 'full') return;
    this.#metrics.unheldBatches++;
    if (isNew) this.#metrics.missingBatches++;
  }

  /** The next batch is not kept by the engine, and may still be on its way: live is not there yet. */
  awaitsLive(live: bigint | null): boolean {
    return live !== null && this.next < this.goneBelow && this.next > live;
  }

  /** Gives up what the engine does not keep and live has passed, all of it without `live`; emits the rest. */
  passOver(live: bigint | null, out: SequencerAction[]): void {
    const passed = live === null || live >= this.goneBelow ? this.goneBelow : live + 1n;
    this.skipTo(passed, out);
  }

  /** Emits what is held and has its turn. */
  drain(out: SequencerAction[]): void {
    for (let first = this.#held.first; first !== null; first = this.#held.first) {
      if (first.sequence > this.next) return;
      this.#held.takeFirst();
      if (first.sequence === this.next) this.#emit(first, out);
      else this.#metrics.duplicateBatches++;
    }
  }

  /** Emits what is held below `limit`, and gives up what is missing there; what follows may leave too. */
  skipTo(limit: bigint, out: SequencerAction[]): void {
    this.drain(out);
    while (this.next < limit) {
      const first = this.#held.first?.sequence ?? limit;
      const target = first < limit ? first : limit;
      this.#lose(countBetween(this.next, target), out);
      this.next = target;
      this.drain(out);
    }
  }

  /**
   * The engine has begun anew: nothing of the old life leaves any more, and numbers start at 0. Those seen
   * from `oldNumbersEnd` on were of the new life already, and are not lost with the old one.
   */
  restart(oldNumbersEnd: bigint, out: SequencerAction[]): void {
    const lostBatches = countBetween(this.next, oldNumbersEnd);
    if (lostBatches > 0) {
      // What is held has come, but goes with the rest.
      this.#metrics.missingBatches += this.#held.countBelow(oldNumbersEnd);
      this.#lose(lostBatches, out);
    }
    this.#held.clear();
    this.next = 0n;
    this.unseen = 0n;
    this.goneBelow = 0n;
    this.last = null;
  }

  #emit(message: EngineMessage, out: SequencerAction[]): void {
    this.next = message.sequence + 1n;
    this.last = message;
    this.#isLastKept = true;
    this.hasEmitted = true;
    out.push({ kind: 'emit', message });
  }

  #lose(lostBatches: number, out: SequencerAction[]): void {
    this.#metrics.lostBatches += lostBatches;
    // One event a batch at least: Dynamo's own counter does not see what its socket lost.
    this.#metrics.droppedEvents += lostBatches;
    const clears = this.#options.clearsOnGap && this.hasEmitted;
    if (clears) this.hasEmitted = false;
    out.push({ kind: 'gap', lostBatches, clears });
  }
}
