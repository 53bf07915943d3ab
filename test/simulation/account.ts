/**
 * Account: what one engine socket's relay should have counted and passed on, from what the witness saw.
 *
 * Stretch  what went into the pipeline between two restarts, as the relay saw them: one life of the engine,
 *          where it saw them all.
 */
import type { RouterIndexModel } from '../support/router-index-model.ts';
import { BlockCounts, type BlockKey, blockKey, type CacheOp } from './block-counts.ts';
import type { EngineBatch, Passage, Witness } from './witness.ts';

export class Account {
  readonly stretches: readonly (readonly EngineBatch[])[];
  /** The rank's losses since its last clear may mislead routers. */
  readonly hasLossSinceClear: ReadonlyMap<number, boolean>;
  readonly #witness: Witness;
  readonly #ranks: readonly number[];

  constructor(witness: Witness, ranks: readonly number[], clearsOnGap: boolean) {
    this.#witness = witness;
    this.#ranks = ranks;
    this.stretches = stretchesOf(witness.passages);
    this.hasLossSinceClear = new Map(
      ranks.map((rank) => [rank, !clearsOnGap && hasLossSinceClear(witness.passages, rank)]),
    );
  }

  /**
   * Fewest and most batches that may count as lost. Exactly what has been seen to exist and was not passed
   * on, but for what no relay can know:
   *
   * - whether a life of which nothing was passed on was one;
   * - whose the batches of a link are, before an answer has come;
   * - what was lost on each side of a restart that cannot be seen, of which only the jump shows.
   */
  get lostBatches(): { readonly least: number; readonly most: number } {
    if (this.unseenRestarts.length > 0) {
      const least = this.stretches.reduce((sum, stretch) => sum + jumpsIn(stretch), 0);
      return { least, most: Number.POSITIVE_INFINITY };
    }
    const passed = new Set(this.stretches.flat());
    const passedLives = new Set([...passed].map(({ life }) => life));
    const { lives, seen, known, unproven } = this.#witness;
    const lostUpTo = (life: number, last = -1): number =>
      (lives[life] ?? []).slice(0, last + 1).filter((batch) => !passed.has(batch)).length;
    let least = 0;
    let most = unproven;
    for (const life of lives.keys()) {
      if (passedLives.has(life)) least += lostUpTo(life, known[life]);
      most += lostUpTo(life, seen[life]);
    }
    return { least, most };
  }

  /** Where batches of one stretch left twice, or out of their order; null where they did not. */
  get disorder(): string | null {
    for (const stretch of this.stretches) {
      const at = stretch.findIndex(
        ({ sequence }, index) => sequence <= (stretch[index - 1]?.sequence ?? -1),
      );
      if (at >= 0) return `batch ${shown(stretch[at])} behind ${shown(stretch[at - 1])}`;
    }
    return null;
  }

  /** Where a batch left behind one of a later life; null where none did. */
  get lifeDisorder(): string | null {
    const batches = this.stretches.flat();
    const at = batches.findIndex(({ life }, index) => life < (batches[index - 1]?.life ?? 0));
    return at < 0 ? null : `batch ${shown(batches[at])} behind ${shown(batches[at - 1])}`;
  }

  /**
   * Restarts that the relay took no notice of: what it passed on before and after each, the first of a
   * stretch. Whatever else is strange behind it comes of that.
   */
  get unseenRestarts(): [before: EngineBatch, after: EngineBatch][] {
    return this.stretches.flatMap((stretch): [EngineBatch, EngineBatch][] => {
      const index = stretch.findIndex(({ life }) => life !== stretch[0]?.life);
      const before = stretch[index - 1];
      const after = stretch[index];
      return before !== undefined && after !== undefined ? [[before, after]] : [];
    });
  }

  /**
   * The first of those that an answer to every request would have shown, null where there is none: the new
   * life's batch under the number that left last can be compared, unless that life could not encode it.
   */
  get overlookedRestart(): string | null {
    const overlooked = this.unseenRestarts.find(
      ([before, { life }]) => this.#witness.lives[life]?.[before.sequence]?.payload !== null,
    );
    return overlooked?.map(shown).join(', then ') ?? null;
  }

  /** Something of the engine's present life has come, or was kept when it was asked last. */
  get hasNews(): boolean {
    return this.#witness.life.some((batch) => batch.payload !== null && this.#isKnowable(batch));
  }

  /** Numbers of the engine's present life that have not been passed on, encodable or not. */
  get missingNow(): EngineBatch[] {
    const passed = new Set<EngineBatch>(this.stretches.flat());
    return this.#witness.life.filter((batch) => !passed.has(batch));
  }

  /** Those of them that the engine has, or had, and the relay could know of: it asks once in a pause. */
  get healableNow(): EngineBatch[] {
    return this.missingNow.filter((batch) => batch.payload !== null && this.#isKnowable(batch));
  }

  /** What the pipeline was given, as a router should hold it. */
  passedOn(rank: number): BlockKey[] {
    const counts = new BlockCounts();
    for (const passage of this.#witness.passages) {
      if (passage.kind === 'batch') applyTo(counts, passage.batch);
      else if (passage.clears) for (const one of this.#ranks) counts.clear(one);
    }
    return counts.held(rank);
  }

  /** The same, by the rules of a router's index; every block is its own tokens there. */
  routerOf(rank: number, router: RouterIndexModel): RouterIndexModel {
    const counts = new BlockCounts();
    for (const passage of this.#witness.passages) {
      if (passage.kind === 'batch') {
        if (passage.batch.rank !== rank) continue;
        for (const op of passage.batch.ops) applyToRouter(router, counts, rank, op);
      } else if (passage.clears) {
        applyToRouter(router, counts, rank, { kind: 'clear' });
      }
    }
    return router;
  }

  /** What the engine has told of behind the last batch that is lost for good. */
  behindLastLoss(rank: number): BlockKey[] {
    const last = this.missingNow.at(-1)?.sequence ?? -1;
    const counts = new BlockCounts();
    for (const batch of this.#witness.life) if (batch.sequence > last) applyTo(counts, batch);
    return counts.held(rank);
  }

  #isKnowable({ life, sequence }: EngineBatch): boolean {
    const { seen, answered } = this.#witness;
    return sequence <= (seen[life] ?? -1) || sequence < (answered[life] ?? 0);
  }
}

/** Numbers that the batches before and behind them leave out. */
function jumpsIn(stretch: readonly EngineBatch[]): number {
  const last = stretch.at(-1);
  return last === undefined ? 0 : last.sequence + 1 - stretch.length;
}

function shown(batch: EngineBatch | undefined): string {
  return batch === undefined ? '' : `${batch.life}:${batch.sequence}`;
}

function applyToRouter(
  router: RouterIndexModel,
  counts: BlockCounts,
  rank: number,
  op: CacheOp,
): void {
  counts.apply(rank, op);
  if (op.kind === 'clear') router.apply({ type: 'cleared' });
  else if (op.kind === 'store') {
    const { tier, parent, hashes } = op;
    const blocks = hashes.map((hash) => ({ blockHash: hash, tokensHash: hash }));
    router.apply({ type: 'stored', tier, parent, blocks });
  } else {
    const { tier } = op;
    const hashes = op.hashes.filter((hash) => counts.copies(rank, blockKey(tier, hash)) === 0);
    if (hashes.length > 0) router.apply({ type: 'removed', tier, hashes });
  }
}

function applyTo(counts: BlockCounts, { rank, ops }: EngineBatch): void {
  for (const op of ops) counts.apply(rank, op);
}

function stretchesOf(passages: readonly Passage[]): EngineBatch[][] {
  const stretches: EngineBatch[][] = [[]];
  for (const passage of passages) {
    if (passage.kind === 'restart') stretches.push([]);
    else if (passage.kind === 'batch') stretches.at(-1)?.push(passage.batch);
  }
  return stretches;
}

function hasLossSinceClear(passages: readonly Passage[], rank: number): boolean {
  let hasLoss = false;
  for (const passage of passages) {
    if (passage.kind === 'gap') hasLoss = true;
    else if (passage.kind === 'restart') hasLoss = false;
    else if (passage.batch.rank === rank) {
      if (passage.batch.ops.some(({ kind }) => kind === 'clear')) hasLoss = false;
    }
  }
  return hasLoss;
}
