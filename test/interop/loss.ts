/** Which messages a lossy hop drops: by seed, so that equal seeds drop the same ones. */
export class Loss {
  /** Share of the messages that go, 0 … 1. */
  share: number;
  dropped = 0;
  passed = 0;
  readonly #random: () => number;

  constructor(share: number, seed: string) {
    this.share = share;
    this.#random = seeded(seed);
  }

  /** Whether the next message goes. */
  takesNext(): boolean {
    const isTaken = this.#random() < this.share;
    if (isTaken) this.dropped++;
    else this.passed++;
    return isTaken;
  }
}

/** Numbers from 0 to 1, the same ones for the same seed. */
function seeded(seed: string): () => number {
  let state = Buffer.from(seed).reduce((sum, byte) => (sum * 31 + byte) >>> 0, 1);
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
