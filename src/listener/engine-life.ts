/**
 * EngineLife: whether what arrives is still of the engine that was heard before. Nothing in the stream
 * marks a restart: the numbers simply start over.
 *
 * Live     a number that is not above the live mark is of a new life, since a publisher sends nothing
 *          twice. One above it that has already left is a copy of what a replay brought, unless its
 *          bytes are others.
 * Link     behind a lost one all is in doubt until a replay has shown a batch to compare (its anchor).
 */
import { BatchDigests, isOfOtherLife } from './batch-identity.ts';
import type { EngineMessage } from './frames.ts';

export class EngineLife {
  /** Of replayed batches, whose live copies may still come. */
  readonly #digests = new BatchDigests();
  /** Highest number seen live; null before the first. */
  live: bigint | null = null;
  /** What had left last when the link was lost; null while nothing is in doubt. */
  anchor: EngineMessage | null = null;
  isLinked = false;
  /** Numbers from here on were not seen before the present link: they may be another life's. */
  unseenAtLink = 0n;

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
    return this.anchor !== null && isOfOtherLife(message, this.anchor);
  }

  takeLink(isLinked: boolean, unseen: bigint): void {
    this.isLinked = isLinked;
    this.unseenAtLink = unseen;
  }

  noteReplayed({ sequence, payload }: EngineMessage): void {
    if (this.live === null || sequence > this.live) this.#digests.add(sequence, payload);
  }

  restart(): void {
    this.#digests.clear();
    this.live = null;
    this.anchor = null;
  }
}
