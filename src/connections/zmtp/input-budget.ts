/**
 * InputBudget: how much of what subscribers say is read in a while, all of them together.
 *
 * Why      a subscriber says a few hundred bytes and then next to nothing; one that floods, or four hundred of them, would take
 *          the event loop for themselves: small frames take long to read.
 * Little   is always read: who means well does not wait behind those who do not.
 * Much     is read in the order in which it came, WINDOW_BYTES in WINDOW_MS.
 */
const LITTLE_BYTES = 1 << 10;
const WINDOW_BYTES = 1 << 16;
const WINDOW_MS = 50;

export class InputBudget {
  #leftBytes = WINDOW_BYTES;
  #waiting: { readonly byteCount: number; readonly goOn: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Whether so much may be read now; else `goOn` is called when it may. */
  take(byteCount: number, goOn: () => void): boolean {
    if (byteCount <= LITTLE_BYTES) return true;
    this.#timer ??= setTimeout(() => this.#renew(), WINDOW_MS);
    if (this.#waiting.length === 0 && this.#leftBytes > 0) {
      this.#leftBytes -= byteCount;
      return true;
    }
    this.#waiting.push({ byteCount, goOn });
    return false;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#waiting = [];
  }

  #renew(): void {
    this.#leftBytes = WINDOW_BYTES;
    this.#timer = undefined;
    while (this.#leftBytes > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#leftBytes -= next.byteCount;
      next.goOn();
    }
    if (this.#leftBytes < WINDOW_BYTES) this.#timer = setTimeout(() => this.#renew(), WINDOW_MS);
  }
}
