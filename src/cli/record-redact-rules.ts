/**
 * What of an engine event is harmless: each field's rule, and the words that engines write and no user does.
 *
 * word     a known word, else UNKNOWN     integer  an integer, else nil     slot  either of the two
 * hash     an integer or a digest         hashes   a list of them           tokens  as many zeros
 * none     nil
 */
export type Rule = 'word' | 'hash' | 'hashes' | 'tokens' | 'integer' | 'slot' | 'none';

/** What the last slots hold differs from engine to engine: groups, kinds, windows, localities. */
const TAIL: readonly Rule[] = ['slot', 'slot', 'slot', 'slot', 'slot'];

/** Slots of array events by their tag; what is not here becomes nil. */
export const SLOTS_OF_TAG: ReadonlyMap<string, readonly Rule[]> = new Map([
  // Block size, old adapter id, medium, adapter name or salt, extra keys.
  [
    'BlockStored',
    ['word', 'hashes', 'hash', 'tokens', 'integer', 'none', 'word', 'none', 'none', ...TAIL],
  ],
  ['BlockRemoved', ['word', 'hashes', 'word', ...TAIL]],
  ['AllBlocksCleared', ['word', 'word']],
]);
export const OTHER_SLOTS: readonly Rule[] = ['word'];

/** Keys of map events; what is not here is not written. */
export const RULE_OF_KEY: ReadonlyMap<string, Rule> = new Map([
  ['type', 'word'],
  ['block_hashes', 'hashes'],
  ['parent_block_hash', 'hash'],
  ['token_ids', 'tokens'],
  ['block_size', 'integer'],
  ['medium', 'word'],
  ['group_idx', 'integer'],
  ['kv_cache_spec_kind', 'word'],
  ['kv_cache_spec_sliding_window', 'integer'],
  ['locality', 'word'],
  ['ownership', 'word'],
]);

/** Texts that engines write and no user does. */
const KNOWN_WORDS: ReadonlySet<string> = new Set(
  (
    'BlockStored BlockRemoved AllBlocksCleared Ignored LOCAL REMOTE kvcr ' +
    'GPU DEVICE CPU CPU_PINNED CPU_TIER1 CPU_TIER2 DISK NVME STORAGE FS OBJ EXTERNAL NETWORK ' +
    'SHARED full_attention mla_attention sliding_window sliding_window_mla mamba ' +
    'chunked_local_attention sink_full_attention encoder_only_attention cross_attention unknown'
  ).split(' '),
);
export const UNKNOWN_WORD = 'UNKNOWN';
export const MAX_WORD_BYTES = 40;

/** Whether a word of an event says nothing about a user; engines differ in its case. */
export function isKnownWord(word: string): boolean {
  return KNOWN_WORDS.has(word) || KNOWN_WORDS.has(word.toUpperCase());
}
