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
  /** Highest number of each life that this relay has seen, live or replayed; -1 for none. */
  seen: number[] = [];
  /** Numbers that links brought on which no answer showed whose they are. */
  unproven = 0;
  #isProven = false;
  #highestUnproven = -1;
  readonly #batches = new Map<Uint8Array, EngineBatch>();

  get life(): EngineBatch[] {
    return this.lives[this.lives.length - 1] ?? [];
  }

  noteBatch(batch: EngineBatch): void {
    this.lives[batch.life]?.push(batch);
    if (batch.payload !== null) this.#batches.set(batch.payload, batch);
  }

  noteLive(batch: EngineBatch): void {
    this.#noteSeen(batch);
    if (!this.#isProven) this.#highestUnproven = Math.max(this.#highestUnproven, batch.sequence);
  }

  noteReplayed(batch: EngineBatch): void {
    this.#noteSeen(batch);
    this.#isProven = true;
  }

  noteLink(isLinked: boolean): void {
    if (!isLinked && !this.#isProven) this.unproven += this.#highestUnproven + 1;
    this.#isProven = false;
    this.#highestUnproven = -1;
  }

  notePassed(payload: Uint8Array): void {
    const batch = this.#batches.get(payload);
    if (batch === undefined) throw new Error('a batch that no engine has sent');
    this.passages.push({ kind: 'batch', batch });
  }

  /** Another relay begins with nothing. */
  forgetRelay(): void {
    this.passages = [];
    this.seen = [];
    this.unproven = 0;
    this.#isProven = false;
    this.#highestUnproven = -1;
  }

  #noteSeen({ life, sequence }: EngineBatch): void {
    this.seen[life] = Math.max(this.seen[life] ?? -1, sequence);
  }
}
