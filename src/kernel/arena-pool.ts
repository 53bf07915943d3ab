/**
 * ArenaPool: objects that live as long as the arena's lists do, and are used again after its next reset.
 * Events of a batch come and go by the dozen; made anew, they would be most of what a batch leaves to
 * the garbage collector.
 *
 * Whoever takes one fills in every field. Whoever keeps one longer copies it.
 */
import { arena } from './arena.ts';

/** Far more than a batch mostly has; further objects are made anew. */
const MAX_POOLED = 4096;

export class ArenaPool<Pooled> {
  readonly #make: () => Pooled;
  readonly #objects: Pooled[] = [];
  #used = 0;
  #epoch = 0;

  constructor(make: () => Pooled) {
    this.#make = make;
  }

  take(): Pooled {
    if (this.#epoch !== arena.epoch) {
      this.#epoch = arena.epoch;
      this.#used = 0;
    }
    if (this.#used === MAX_POOLED) return this.#make();
    if (this.#used === this.#objects.length) this.#objects.push(this.#make());
    return this.#objects[this.#used++] as Pooled;
  }
}
