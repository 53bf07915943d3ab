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

/** What a rank's group was learned to be. */
interface Learned {
  readonly dpRank: number;
  readonly groupIdx: number;
  readonly kind: string;
  readonly kindClass: KindClass;
}

export class AttentionGroups {
  readonly #ranks = new Map<number, Map<number, Learned>>();
  #groupCount = 0;
  /** The group asked for last: the next event is mostly of the same one. */
  #last: Learned | undefined;

  learn(dpRank: number, groupIdx: number, kind: string): void {
    if (this.#find(dpRank, groupIdx)?.kind === kind) return;
    let groups = this.#ranks.get(dpRank);
    if (groups?.has(groupIdx) !== true) {
      if (this.#groupCount >= MAX_GROUPS) return;
      this.#groupCount++;
    }
    if (groups === undefined) {
      groups = new Map();
      this.#ranks.set(dpRank, groups);
    }
    const kindClass = classOf(kind);
    // A kind that is not known can be of any length.
    this.#last = { dpRank, groupIdx, kind: kindClass === 'unknown' ? '' : kind, kindClass };
    groups.set(groupIdx, this.#last);
  }

  forgetRank(dpRank: number): void {
    this.#groupCount -= this.#ranks.get(dpRank)?.size ?? 0;
    this.#ranks.delete(dpRank);
    this.#last = undefined;
  }

  /** Why an event of this group or kind is not relayed; null where it is. */
  rejection(dpRank: number, groupIdx: number | null, kind: string | null): FilterReason | null {
    if (kind !== null) {
      const kindClass = this.#last?.kind === kind ? this.#last.kindClass : classOf(kind);
      if (kindClass === 'main') return null;
      return kindClass === 'unknown' ? 'unknown_kind' : 'non_main_attention_kind';
    }
    if (groupIdx === null) return null;
    const learned = this.#find(dpRank, groupIdx)?.kindClass;
    if (learned === 'main') return null;
    if (learned === 'unknown') return 'unknown_kind';
    if (learned === 'non_main') return 'non_main_attention_group';
    return groupIdx === 0 ? null : 'unlearned_group_idx';
  }

  #find(dpRank: number, groupIdx: number): Learned | undefined {
    const last = this.#last;
    if (last?.dpRank === dpRank && last.groupIdx === groupIdx) return last;
    this.#last = this.#ranks.get(dpRank)?.get(groupIdx);
    return this.#last;
  }
}
