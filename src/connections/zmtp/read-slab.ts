/**
 * ReadSlab: memory that a link reads into, and again once nobody holds what lies in it.
 *
 * Why      memory outside of the heap is given back by collections alone. With few small objects beside it those are full
 *          ones, which hold both the main thread and V8's helpers.
 * Held     by whoever needs a message for longer than until the next read; each hold() has one letGo().
 */

export const SLAB_BYTES: number = 1 << 18;

/** What may wait for its turn lies in as many; more are held by batches that wait behind a hole, and go with them. */
const MAX_SLABS = 64;

export class ReadSlab {
  readonly bytes: Buffer;
  #holds = 0;

  constructor(byteCount: number) {
    this.bytes = Buffer.allocUnsafeSlow(byteCount);
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  hold(): void {
    this.#holds++;
  }

  letGo(): void {
    this.#holds--;
  }
}

/** The slabs of one link. */
export class ReadSlabs {
  readonly #slabBytes: number;
  readonly #slabs: ReadSlab[] = [];

  constructor(slabBytes: number) {
    this.#slabBytes = slabBytes;
  }

  /** One with room for `byteCount` bytes, other than `current`. */
  take(byteCount: number, current: ReadSlab): ReadSlab {
    if (byteCount > this.#slabBytes) return new ReadSlab(byteCount);
    const free = this.#slabs.find((slab) => slab !== current && !slab.isHeld);
    if (free !== undefined) return free;
    const slab = new ReadSlab(this.#slabBytes);
    if (this.#slabs.length < MAX_SLABS) this.#slabs.push(slab);
    return slab;
  }
}
