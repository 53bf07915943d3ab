/**
 * AttentionGroups: which KV cache groups of a rank hold full prefixes.
 *
 * Learns   from stores on device or host that name both group and kind, the latest counts; removes name
 *          the group alone and are judged by what was learned.
 * Keeps    what it learned through clears, the engine being the same, until it restarts. Bounded in groups.
 * Source   ai-dynamo/dynamo 1.6.1, attention-group rules of the KV publisher.
 */
import type { FilterReason } from '../metrics/relay-metrics.ts';

type KindClass = 'main' | 'non_main' | 'unknown';

const MAIN_KINDS: ReadonlySet<string> = new Set([
  'full_attention',
  'mla_attention',
  'sink_full_attention',
]);
const NON_MAIN_KINDS: ReadonlySet<string> = new Set([
  'sliding_window',
  'sliding_window_mla',
  'mamba',
  'chunked_local_attention',
  'encoder_only_attention',
  'cross_attention',
]);

/** Far more groups than any model has, over all ranks; further ones are not learned. */
const MAX_GROUPS = 65_536;

function classOf(kind: string): KindClass {
  if (MAIN_KINDS.has(kind)) return 'main';
  return NON_MAIN_KINDS.has(kind) ? 'non_main' : 'unknown';
}

export class AttentionGroups {
  readonly #ranks = new Map<number, Map<number, KindClass>>();
  #groupCount = 0;

  learn(dpRank: number, groupIdx: number, kind: string): void {
    let groups = this.#ranks.get(dpRank);
    if (groups?.has(groupIdx) !== true) {
      if (this.#groupCount >= MAX_GROUPS) return;
      this.#groupCount++;
    }
    if (groups === undefined) {
      groups = new Map();
      this.#ranks.set(dpRank, groups);
    }
    groups.set(groupIdx, classOf(kind));
  }

  forgetRank(dpRank: number): void {
    this.#groupCount -= this.#ranks.get(dpRank)?.size ?? 0;
    this.#ranks.delete(dpRank);
  }

  /** Why an event of this group or kind is not relayed; null where it is. */
  rejection(dpRank: number, groupIdx: number | null, kind: string | null): FilterReason | null {
    if (kind !== null) {
      const kindClass = classOf(kind);
      if (kindClass === 'main') return null;
      return kindClass === 'unknown' ? 'unknown_kind' : 'non_main_attention_kind';
    }
    if (groupIdx === null) return null;
    const learned = this.#ranks.get(dpRank)?.get(groupIdx);
    if (learned === 'main') return null;
    if (learned === 'unknown') return 'unknown_kind';
    if (learned === 'non_main') return 'non_main_attention_group';
    return groupIdx === 0 ? null : 'unlearned_group_idx';
  }
}
