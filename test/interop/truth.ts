/**
 * The driver's truth: what an engine published, folded as the engine itself keeps count.
 *
 * Counts   a store adds one copy of each block, a removal takes one away; a block is live while it has
 *          a copy. Engines announce equal blocks once a copy.
 * Leaves   out attention groups that do not hold whole prefixes. A store names group and kind, a removal
 *          the group alone.
 * Owns     nothing of the relay's code: it is the other side of the comparison.
 */
import { readFileSync } from 'node:fs';

export interface TruthBatch {
  readonly seq: number;
  /** Name of the case; null in a stream. */
  readonly case: string | null;
  readonly events: readonly TruthEvent[];
}

export interface TruthEvent {
  readonly type: string;
  readonly block_hashes?: readonly JsonHash[];
  readonly parent_block_hash?: JsonHash | null;
  readonly token_ids?: readonly unknown[];
  readonly block_size?: number;
  readonly medium?: string | null;
  readonly group_idx?: number | null;
  readonly kv_cache_spec_kind?: string | null;
  readonly session_id?: string | null;
}

/** Integers that a number does not hold and raw bytes are marked. */
type JsonHash = number | { readonly $int: string } | { readonly $bytes: string };

export interface TruthStore {
  readonly tier: string;
  readonly parent: bigint | null;
  readonly hashes: readonly bigint[];
  readonly tokenCount: number;
  readonly blockSize: number;
  readonly sessionId: string | null;
}

const MAIN_KINDS = new Set(['full_attention', 'mla_attention', 'sink_full_attention']);

const TIERS = new Map([
  ['GPU', 'device'],
  ['CPU', 'host_pinned'],
  ['CPU_PINNED', 'host_pinned'],
  ['DISK', 'disk'],
  ['EXTERNAL', 'external'],
]);

export function readTruth(path: string): TruthBatch[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as TruthBatch);
}

export class Truth {
  /** Stores of blocks, in order. */
  readonly stores: TruthStore[] = [];
  /** `+ tier hash`, `- tier hash` where the last copy went, `clear`: what a router has to hear. */
  readonly changes: string[] = [];
  eventCount = 0;
  /** Removal events, and how many of their hashes no copy was held of: an engine has none. */
  removals = 0;
  strayRemovals = 0;
  clears = 0;
  readonly #copies = new Map<string, number>();
  readonly #isMainGroup = new Map<number, boolean>();

  constructor(batches: readonly TruthBatch[]) {
    for (const { events } of batches) for (const event of events) this.#take(event);
  }

  /** `tier hash` of each live block, sorted. */
  live(): string[] {
    return [...this.#copies.keys()].sort();
  }

  #take(event: TruthEvent): void {
    if (event.type === 'AllBlocksCleared') {
      this.clears++;
      this.eventCount++;
      this.changes.push('clear');
      this.#copies.clear();
      return;
    }
    if (!this.#isMain(event)) return;
    this.eventCount++;
    const tier = tierOf(event.medium);
    const hashes = (event.block_hashes ?? []).map(hashOf);
    if (event.type === 'BlockRemoved') this.#remove(tier, hashes);
    else this.#store(tier, hashes, event);
  }

  #store(tier: string, hashes: readonly bigint[], event: TruthEvent): void {
    const { parent_block_hash: parent, token_ids, block_size, session_id } = event;
    this.stores.push({
      tier,
      hashes,
      parent: parent == null ? null : hashOf(parent),
      tokenCount: token_ids?.length ?? 0,
      blockSize: block_size ?? 0,
      sessionId: session_id ?? null,
    });
    for (const hash of hashes) {
      const key = `${tier} ${hash}`;
      this.changes.push(`+ ${key}`);
      this.#copies.set(key, (this.#copies.get(key) ?? 0) + 1);
    }
  }

  #remove(tier: string, hashes: readonly bigint[]): void {
    this.removals++;
    for (const hash of hashes) {
      const key = `${tier} ${hash}`;
      const copies = this.#copies.get(key) ?? 0;
      if (copies === 0) this.strayRemovals++;
      if (copies > 1) {
        this.#copies.set(key, copies - 1);
      } else {
        this.#copies.delete(key);
        this.changes.push(`- ${key}`);
      }
    }
  }

  #isMain({ group_idx: group, kv_cache_spec_kind: kind }: TruthEvent): boolean {
    if (kind != null) {
      const isMain = MAIN_KINDS.has(kind);
      if (group != null) this.#isMainGroup.set(group, isMain);
      return isMain;
    }
    return group == null || this.#isMainGroup.get(group) !== false;
  }
}

/** As 64 bits without a sign; of a longer digest the last 8 bytes, as the engine itself shortens it. */
function hashOf(hash: JsonHash): bigint {
  if (typeof hash === 'number') return BigInt.asUintN(64, BigInt(hash));
  if ('$int' in hash) return BigInt.asUintN(64, BigInt(hash.$int));
  return BigInt(`0x${hash.$bytes.slice(-16)}`);
}

function tierOf(medium: string | null | undefined): string {
  const tier = medium == null ? 'device' : TIERS.get(medium);
  if (tier === undefined) throw new Error(`The truth has a medium without a tier: ${medium}`);
  return tier;
}
