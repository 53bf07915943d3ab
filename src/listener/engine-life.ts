/**
 * EngineLife: whether what arrives is still of the engine that was heard before. Nothing in the stream
 * marks a restart: the numbers simply start over.
 *
 * Live     a number that is not above the live mark is of a new life, since a publisher sends nothing
 *          twice. One above it that has already left is a copy of what a replay brought, unless its
 *          bytes are others.
 * Link     behind a lost one all is in doubt until a replay has shown a batch to compare (its anchor), or
 *          that the engine keeps older batches only: the one that sent the anchor would keep that.
 */
import { BatchDigests, isOfOtherLife } from './batch-identity.ts';
import type { EngineMessage } from './frames.ts';

export class EngineLife {
  /** Of replayed batches, whose live copies may still come. */
  readonly #digests = new BatchDigests();
  /** Highest number seen live; null before the first. */
  live: bigint | null = null;
  /** The same of the link that stands. */
  liveOnLink: bigint | null = null;
  /** What had left last when the link was lost; null while nothing is in doubt. */
  anchor: EngineMessage | null = null;
  isLinked = false;
  /** No batch from the anchor on is kept by who was asked last. */
  #isAnchorGone = false;
  #unseenInDoubt = 0n;

  /** Where an answer has to begin, to show whose it is; null where nothing is in doubt. */
  get askStart(): bigint | null {
    if (this.anchor === null) return null;
    return this.#isAnchorGone ? 0n : this.anchor.sequence;
  }

  noteLive(sequence: bigint): void {
    this.live = sequence;
    this.liveOnLink = sequence;
  }

  /** On a new link nothing may leave before it is known whose batches these are. */
  get isInDoubt(): boolean {
    return this.anchor !== null && this.isLinked;
  }

  /** Whether this live batch is of a new life; all below `next` have left. */
  isNew({ sequence, payload }: EngineMessage, next: bigint): boolean {
    if (this.live !== null && sequence <= this.live) return true;
    if (sequence >= next) return false;
    const identity = this.#digests.compare(sequence, payload);
    // A new link carries nothing that had been numbered when the old one was lost.
    return identity === 'unknown' ? this.isInDoubt : identity === 'other';
  }

  /** Whether the first batch of an answer is of another life than the anchor; none: it is not. */
  contradicts(message: EngineMessage): boolean {
    if (this.anchor === null) return false;
    // Whoever has sent the anchor keeps that, or something newer.
    if (this.#isAnchorGone && message.sequence < this.anchor.sequence) return true;
    return isOfOtherLife(message, this.anchor);
  }

  /** An answer from the anchor on is empty. True the first time: what comes before it is to be asked for. */
  noteNothingKept(): boolean {
    if (this.anchor === null || this.#isAnchorGone) return false;
    this.#isAnchorGone = true;
    return true;
  }

  /**
   * Where the old life's numbers end, where a replay shows a new one and `unseen` is the first number not
   * seen: what came live on a link in doubt was the new one's already. A live number that goes back shows
   * that all before it were the old one's.
   */
  oldNumbersEnd(unseen: bigint): bigint {
    return this.anchor === null ? unseen : this.#unseenInDoubt;
  }

  takeLink(isLinked: boolean): void {
    this.isLinked = isLinked;
    this.liveOnLink = null;
    this.#isAnchorGone = false;
  }

  /** From here on it is in doubt whose numbers come, those from `unseen` on; that outlasts links. */
  doubt(witness: EngineMessage | null, unseen: bigint): void {
    if (this.anchor !== null) return;
    this.anchor = witness;
    this.#unseenInDoubt = unseen;
  }

  noteReplayed({ sequence, payload }: EngineMessage): void {
    if (this.live === null || sequence > this.live) this.#digests.add(sequence, payload);
  }

  restart(): void {
    this.#digests.clear();
    this.live = null;
    this.liveOnLink = null;
    this.anchor = null;
    this.#isAnchorGone = false;
  }
}
