/** What goes through the pipeline beside native batches: a rank whose blocks are not believed any more. */

/** Why this relay clears a rank without being told to by the engine. */
export type OwnClearCause = 'restart' | 'gap';

export class RankCleared {
  readonly dpRank: number;
  readonly cause: OwnClearCause;
  /** Ms on the monotonic clock. */
  readonly atMs: number;

  constructor(dpRank: number, cause: OwnClearCause, atMs: number) {
    this.dpRank = dpRank;
    this.cause = cause;
    this.atMs = atMs;
  }
}
