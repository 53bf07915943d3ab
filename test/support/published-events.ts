/**
 * Router events as trials read them, and the words in which they are shown.
 *
 *   S#1(∅→101,102)   a store: publish id, parent (∅: none), block hashes
 *   R#2(101)@disk    a remove; the storage tier where it is not `device`
 *   r1:X#3           a clear; the dp rank where it is not 0
 */
import { Unpackr } from 'msgpackr';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import type { ModelEvent } from './router-index-model.ts';

export interface PublishedBlock {
  readonly hash: bigint;
  readonly tokensHash: bigint;
  /** The images of the block; null without. */
  readonly mmHashes: readonly bigint[] | null;
}

export interface PublishedEvent {
  readonly kind: 'S' | 'R' | 'X';
  readonly id: bigint;
  readonly workerId: bigint;
  readonly rank: number;
  readonly tier: string;
  readonly parent: bigint | null;
  /** Of a store. */
  readonly blocks: readonly PublishedBlock[];
  /** Of a store or a remove. */
  readonly hashes: readonly bigint[];
}

type Integer = number | bigint;

interface WireBlock {
  block_hash: Integer;
  tokens_hash: Integer;
  mm_extra_info: { mm_objects: { mm_hash: Integer }[] } | null;
}

/** A router event as MessagePack or JSON has it. */
export interface WireEvent {
  worker_id: Integer;
  storage_tier: string;
  event: {
    event_id: Integer;
    dp_rank: number;
    data:
      | 'cleared'
      | { removed: { block_hashes: Integer[] } }
      | { stored: { parent_hash: Integer | null; blocks: WireBlock[] } };
  };
}

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true });

/** The router events of one plane message. */
export function eventsOf(payload: Uint8Array): PublishedEvent[] {
  return (unpackr.unpack(payload) as WireEvent[]).map(publishedEventOf);
}

/** Router events that have been unpacked already. */
export function eventsIn(unpacked: readonly unknown[]): PublishedEvent[] {
  return unpacked.map((event) => publishedEventOf(event as WireEvent));
}

/** Router events that lie one after the other, without an array around them. */
export function consecutiveEventsOf(bytes: Uint8Array): PublishedEvent[] {
  const events: PublishedEvent[] = [];
  if (bytes.length === 0) return events;
  unpackr.unpackMultiple(bytes, (event: unknown) => {
    events.push(publishedEventOf(event as WireEvent));
  });
  return events;
}

export function publishedEventOf({ worker_id, storage_tier, event }: WireEvent): PublishedEvent {
  const { data } = event;
  const common = {
    id: BigInt(event.event_id),
    workerId: BigInt(worker_id),
    rank: event.dp_rank,
    tier: storage_tier,
    parent: null,
    blocks: [],
    hashes: [],
  };
  if (data === 'cleared') return { ...common, kind: 'X' };
  if ('removed' in data) {
    return { ...common, kind: 'R', hashes: data.removed.block_hashes.map(BigInt) };
  }
  const { parent_hash, blocks } = data.stored;
  return {
    ...common,
    kind: 'S',
    parent: parent_hash === null ? null : BigInt(parent_hash),
    blocks: blocks.map(blockOf),
    hashes: blocks.map((block) => BigInt(block.block_hash)),
  };
}

function blockOf({ block_hash, tokens_hash, mm_extra_info }: WireBlock): PublishedBlock {
  return {
    hash: BigInt(block_hash),
    tokensHash: BigInt(tokens_hash),
    mmHashes: mm_extra_info?.mm_objects.map((object) => BigInt(object.mm_hash)) ?? null,
  };
}

/** Block hashes by `rank/tier`, each held from its store to its remove, whatever lies above it. */
export function heldAsSet(events: readonly PublishedEvent[]): Map<string, Set<bigint>> {
  const held = new Map<string, Set<bigint>>();
  for (const { kind, rank, tier, hashes } of events) {
    const key = `${rank}/${tier}`;
    const set = held.get(key) ?? new Set();
    held.set(key, set);
    for (const hash of hashes) {
      if (kind === 'S') set.add(hash);
      else set.delete(hash);
    }
    if (kind !== 'X') continue;
    for (const [other, blocks] of held) if (other.startsWith(`${rank}/`)) blocks.clear();
  }
  return held;
}

/** The event as a model of a router's index takes it. */
export function modelEventOf({ kind, tier, parent, blocks, hashes }: PublishedEvent): ModelEvent {
  if (kind === 'X') return { type: 'cleared' };
  const storageTier = tier as StorageTier;
  if (kind === 'R') return { type: 'removed', tier: storageTier, hashes };
  const stored = blocks.map(({ hash, tokensHash }) => ({ blockHash: hash, tokensHash }));
  return { type: 'stored', tier: storageTier, parent, blocks: stored };
}

/** `S#1(∅→101,102)`, `R#2(101)@disk`, `r1:X#3`. */
export function shown({ kind, id, rank, tier, parent, hashes }: PublishedEvent): string {
  const head = `${rank === 0 ? '' : `r${rank}:`}${kind}#${id}`;
  if (kind === 'X') return `${head}${tierSuffix(tier)}`;
  const from = kind === 'S' ? `${parent ?? '∅'}→` : '';
  return `${head}(${from}${hashes.join()})${tierSuffix(tier)}`;
}

export function tierSuffix(tier: string): string {
  return tier === 'device' ? '' : `@${tier}`;
}
