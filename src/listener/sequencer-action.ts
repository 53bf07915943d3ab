/** What the sequencer wants done, in this order. */
import type { EngineMessage } from './frames.ts';

export type SequencerAction =
  | { readonly kind: 'emit'; readonly message: EngineMessage }
  /** Batches are lost for good; where it clears, the rank is to be cleared before what follows. */
  | { readonly kind: 'gap'; readonly lostBatches: number; readonly clears: boolean }
  /** The engine has begun anew; where it clears, as for a gap. */
  | { readonly kind: 'restart'; readonly clears: boolean }
  /** Ask the engine for a replay from `start` on; no other ask is under way. */
  | { readonly kind: 'ask'; readonly id: number; readonly start: bigint }
  /** The answer to this ask is not wanted any more. */
  | { readonly kind: 'drop'; readonly id: number };
