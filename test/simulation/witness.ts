/**
 * Witness: what really happened on one engine socket, to hold the relay's own account against.
 *
 * Knows    every batch of every life of the engine, which of them reached the relay, and in what order
 *          they went into its pipeline, gaps and restarts between them.
 */
import type { CacheOp } from './block-counts.ts';

export interface EngineBatch {
  /** Which start of the engine it is from, from 0. */
  readonly life: number;
  readonly sequence: number;
  readonly rank: number;
  readonly ops: readonly CacheOp[];
  /** Null where the engine could not encode it: its number is used up all the same. */
  readonly payload: Buffer | null;
}

export type Passage =
  | { readonly kind: 'batch'; readonly batch: EngineBatch }
  | { readonly kind: 'gap'; readonly lostBatches: number; readonly clears: boolean }
  | { readonly kind: 'restart'; readonly clears: boolean };

export class Witness {
  /** By life, then by number. */
  readonly lives: EngineBatch[][] = [];
  /** Into the pipeline of the relay that runs now. */
  passages: Passage[] = [];
  /** Highest number of each life that this relay has seen, live or replayed; absent for none. */
  seen: number[] = [];
  /** As above, without what it had to forget again, not knowing whose it was. */
  known: number[] = [];
  /** How many batches each life had numbered when it answered last. */
  readonly answered: number[] = [];
  /** Numbers that links brought on which no answer showed whose they are. */
  unproven = 0;
  /** Live batches of the present link, before an answer has shown whose they are. */
  #doubtful: EngineBatch[] = [];
  #isProven = true;
  #wasLinked = false;
  #restarts = 0;
  readonly #batches = new Map<string, EngineBatch>();

  get life(): EngineBatch[] {
    return this.lives[this.lives.length - 1] ?? [];
  }

  noteBatch(batch: EngineBatch): void {
    this.lives[batch.life]?.push(batch);
    if (batch.payload !== null) this.#batches.set(keyOf(batch.sequence, batch.payload), batch);
  }

  /** `take` gives the batch to the relay, which may see a restart in it. */
  noteLive(batch: EngineBatch, take: () => void): void {
    raise(this.seen, batch);
    if (this.#seesRestart(take)) this.#endDoubt(true);
    if (this.#isProven) raise(this.known, batch);
    else this.#doubtful.push(batch);
  }

  /** As above, for a batch of a wanted answer. */
  noteReplayed(batch: EngineBatch, take: () => void): void {
    raise(this.seen, batch);
    const isRestart = this.#seesRestart(take);
    this.#endDoubt(isRestart);
    if (!isRestart) raise(this.known, batch);
  }

  /** `canProve`: a replay can be asked for. */
  noteLink(isLinked: boolean, canProve: boolean): void {
    if (!canProve) return;
    const highest = Math.max(-1, ...this.#doubtful.map(({ sequence }) => sequence));
    if (!isLinked) this.unproven += highest + 1;
    this.#doubtful = [];
    // The first link of all has nothing to be compared with.
    if (this.#wasLinked) this.#isProven = false;
    this.#wasLinked = true;
  }

  notePassage(passage: Passage): void {
    if (passage.kind === 'restart') this.#restarts++;
    this.passages.push(passage);
  }

  notePassed(sequence: bigint, payload: Uint8Array): void {
    const batch = this.#batches.get(keyOf(sequence, payload));
    if (batch === undefined) throw new Error('a batch that no engine has sent');
    this.passages.push({ kind: 'batch', batch });
  }

  /** Another relay begins with nothing. */
  forgetRelay(): void {
    this.passages = [];
    this.seen = [];
    this.known = [];
    this.unproven = 0;
    this.#doubtful = [];
    this.#isProven = true;
    this.#wasLinked = false;
  }

  #seesRestart(take: () => void): boolean {
    const before = this.#restarts;
    take();
    return this.#restarts > before;
  }

  #endDoubt(isForgotten: boolean): void {
    if (!isForgotten) for (const batch of this.#doubtful) raise(this.known, batch);
    this.#doubtful = [];
    this.#isProven = true;
  }
}

/** By its bytes: what the relay keeps of a batch is a copy. */
function keyOf(sequence: bigint | number, payload: Uint8Array): string {
  return `${sequence} ${Buffer.from(payload).toString('latin1')}`;
}

function raise(highest: number[], { life, sequence }: EngineBatch): void {
  highest[life] = Math.max(highest[life] ?? -1, sequence);
}
