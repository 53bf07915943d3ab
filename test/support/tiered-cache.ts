/**
 * A cache of prompts over all four tiers that follows no rule of an engine's: a tier takes any part of a
 * prompt, and drops any block of one. Makes engine events of blocks of 4 tokens; seeded.
 *
 * Hash   a block's is the same wherever it is stored again; caches of different seeds share none.
 */
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { removeEvent, storeEvent } from './batches.ts';
import { seededRandom } from './router-streams.ts';

const BLOCK_TOKENS = 4;
const MAX_PROMPT_BLOCKS = 12;
/** Few, so that prompts meet. */
const VOCABULARY = 1000;

const LORA_NAMES = [null, null, 'lora-1', 'lora-2'] as const;
const SALTS = [null, null, null, 'tenant-a'] as const;

const MEDIA: readonly (readonly [StorageTier, readonly (string | null)[]])[] = [
  ['device', ['GPU', 'GPU', null]],
  ['device', ['GPU', 'GPU', null]],
  ['host_pinned', ['CPU', 'cpu', 'CPU_PINNED']],
  ['disk', ['DISK', 'NVME', 'STORAGE', 'FS']],
  ['external', ['EXTERNAL', 'REMOTE', 'OBJ']],
];

type EngineEvent = Record<string, unknown>;

export interface CachedPrompt {
  readonly tokens: readonly number[];
  readonly loraName: string | null;
  readonly salt: string | null;
  /** The engine's, one a block. */
  readonly hashes: readonly bigint[];
}

export class TieredCache {
  readonly #seed: number;
  readonly #random: () => number;
  readonly #prompts: CachedPrompt[] = [];
  readonly #ends = new Map<CachedPrompt, number>();
  readonly #hashes = new Map<string, bigint>();

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#addPrompt();
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  tokens(count: number): number[] {
    return Array.from({ length: count }, () => this.below(VOCABULARY));
  }

  anyPrompt(): CachedPrompt {
    return this.pick(this.#prompts);
  }

  /** The next event of an engine: some blocks of a prompt come to a tier, or one or two leave it. */
  nextEvent(): EngineEvent {
    return this.#random() < 0.25 ? this.nextRemoval() : this.nextStore();
  }

  nextRemoval(): EngineEvent {
    const { hashes } = this.anyPrompt();
    const first = this.below(hashes.length);
    const count = 1 + this.below(2);
    return removeEvent(hashes.slice(first, first + count), { medium: this.#anyMedium() });
  }

  nextStore(): EngineEvent {
    if (this.#random() < 0.15) this.#addPrompt();
    const prompt = this.anyPrompt();
    const { tokens, loraName, salt, hashes } = prompt;
    // Mostly from the start, or on from where the last part ended, whichever tier took that.
    const on = (this.#ends.get(prompt) ?? 0) % hashes.length;
    const first = this.pick([0, 0, on, on, this.below(hashes.length)]);
    const end = first + 1 + this.below(hashes.length - first);
    this.#ends.set(prompt, end);
    const keys = [loraName, salt === null ? null : `dynamo-cache-salt:${salt}`];
    const texts = keys.filter((key) => key !== null);
    return storeEvent(hashes.slice(first, end), first === 0 ? null : hashes[first - 1], {
      token_ids: tokens.slice(first * BLOCK_TOKENS, end * BLOCK_TOKENS),
      medium: this.#anyMedium(),
      lora_name: loraName,
      extra_keys: Array.from({ length: end - first }, () => (texts.length === 0 ? null : texts)),
    });
  }

  #anyMedium(): string | null {
    return this.pick(this.pick(MEDIA)[1]);
  }

  /** A new one, or the start of another with something else behind it. */
  #addPrompt(): void {
    const isNew = this.#prompts.length === 0 || this.#random() < 0.4;
    const base = isNew ? null : this.anyPrompt();
    const kept = base === null ? 0 : this.below(base.hashes.length) * BLOCK_TOKENS;
    const added = 1 + this.below(MAX_PROMPT_BLOCKS - kept / BLOCK_TOKENS);
    const tokens = [...(base?.tokens.slice(0, kept) ?? []), ...this.tokens(added * BLOCK_TOKENS)];
    const [loraName, salt] =
      base === null ? [this.pick(LORA_NAMES), this.pick(SALTS)] : [base.loraName, base.salt];
    const hashes = Array.from({ length: tokens.length / BLOCK_TOKENS }, (_, block) =>
      this.#hashOf([loraName, salt, ...tokens.slice(0, (block + 1) * BLOCK_TOKENS)].join(' ')),
    );
    this.#prompts.push({ tokens, loraName, salt, hashes });
  }

  #hashOf(place: string): bigint {
    const known = this.#hashes.get(place);
    if (known !== undefined) return known;
    // All 64 bits in use, and no two alike, in the caches of other seeds neither.
    const number = (BigInt(this.#seed) << 24n) + BigInt(this.#hashes.size + 1);
    const hash = BigInt.asUintN(64, number * 0x9e37_79b9_7f4a_7c15n);
    this.#hashes.set(place, hash);
    return hash;
  }
}
