/**
 * Streams of router events as text, and random ones.
 *
 * One JSON object a line, as test/peers/dynamo_router_oracle.py reads and writes them: `name`, `events`
 * and, where a router has answered, `blocks`. Every u64 is a decimal string.
 */
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import type { HeldRow, ModelBlock, ModelEvent } from './router-index-model.ts';

export type WireEvent =
  | {
      readonly type: 'stored';
      readonly tier?: StorageTier;
      readonly parent: string | null;
      readonly blocks: readonly (readonly [string, string])[];
    }
  | { readonly type: 'removed'; readonly tier?: StorageTier; readonly hashes: readonly string[] }
  | { readonly type: 'cleared' };

export interface RouterStream {
  readonly name: string;
  readonly events: readonly WireEvent[];
  /** What a router holds after them, in the order of its dump. */
  readonly blocks?: readonly HeldRow[];
}

export function modelEvent(event: WireEvent): ModelEvent {
  if (event.type === 'cleared') return event;
  const tier = event.tier ?? 'device';
  if (event.type === 'removed') return { type: 'removed', tier, hashes: event.hashes.map(BigInt) };
  const blocks = event.blocks.map(([blockHash, tokensHash]) => ({
    blockHash: BigInt(blockHash),
    tokensHash: BigInt(tokensHash),
  }));
  const parent = event.parent === null ? null : BigInt(event.parent);
  return { type: 'stored', tier, parent, blocks };
}

export function wireEvent(event: ModelEvent): WireEvent {
  if (event.type === 'cleared') return event;
  const { tier } = event;
  if (event.type === 'removed') return { type: 'removed', tier, hashes: event.hashes.map(String) };
  const blocks = event.blocks.map(
    ({ blockHash, tokensHash }) => [`${blockHash}`, `${tokensHash}`] as const,
  );
  return { type: 'stored', tier, parent: event.parent === null ? null : `${event.parent}`, blocks };
}

/** Rows in an order of their own, for comparing. */
export function sortedRows(rows: readonly HeldRow[]): string[] {
  return rows.map((row) => row.join(' ')).sort();
}

/** The same numbers from 0 up to 1 for a seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface RandomStreamOptions {
  readonly maxEvents: number;
  /** Share of hashes that have nothing to do with the place of their block, 0 … 1. */
  readonly wildness: number;
}

const TIERS: readonly StorageTier[] = [
  'device',
  'device',
  'device',
  'device',
  'host_pinned',
  'disk',
];

/** A stream over few tokens, so that its chains meet. */
export function randomStream(
  random: () => number,
  { maxEvents, wildness }: RandomStreamOptions,
): ModelEvent[] {
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  const tokenCount = pick([2, 3, 4, 6]);
  const wildHashes = pick([4, 8, 16, 40]);
  const places: string[] = [];
  const hashOf = (place: string): bigint => {
    if (random() < wildness) return BigInt(1 + below(wildHashes));
    const known = places.indexOf(place);
    return BigInt(100 + (known < 0 ? places.push(place) - 1 : known));
  };
  const stored = (tier: StorageTier): ModelEvent => {
    const base = places.length > 0 && random() < 0.75 ? pick(places) : '';
    const parent = base === '' ? null : hashOf(base);
    const blocks: ModelBlock[] = [];
    let place = base;
    for (let count = random() < 0.1 ? 0 : 1 + below(4); count > 0; count--) {
      const tokensHash = BigInt(1 + below(tokenCount));
      place += ` ${tokensHash}`;
      blocks.push({ blockHash: hashOf(place), tokensHash });
    }
    return { type: 'stored', tier, parent, blocks };
  };
  const removed = (tier: StorageTier): ModelEvent => {
    const count = pick([1, 1, 2, 3, 5]);
    const hashes = Array.from({ length: count }, () => hashOf(pick([...places, ' 1'])));
    return { type: 'removed', tier, hashes };
  };
  return Array.from({ length: 3 + below(maxEvents - 2) }, () => {
    const kind = random();
    if (kind < 0.6) return stored(pick(TIERS));
    return kind < 0.97 ? removed(pick(TIERS)) : { type: 'cleared' };
  });
}
