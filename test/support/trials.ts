/**
 * The words of the trials in `test/trials`: engine messages in, router events out, both short enough to
 * be held against the report that a trial comes from.
 *
 *   St(102, { parent: 101, tokens: B, medium: 'CPU' })   a store of one block, or of several
 *   Rm(101)   Clr                                        a remove, a clear
 *   f(5, [St(101), Clr], { rank: 1 })                    one message: topic, engine seq, batch
 *
 * What comes out is shown as published-events.ts has it: `S#1(∅→101,102)`.
 *
 * Events are in map form, as engines send them today; `positional()` makes the older array of one.
 * Whatever a trial needs beyond these words is spread in by its wire name: `{ ...St(101), locality: … }`.
 */
import { Packr } from 'msgpackr';
import type { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PipelineConfig } from '../../src/pipeline.ts';
import { STORAGE_TIERS } from '../../src/protocol/storage-tier.ts';
import { dumpOf } from './held-blocks.ts';
import { InProcessRelay } from './in-process-relay.ts';
import {
  eventsOf,
  type PublishedBlock,
  type PublishedEvent,
  shown,
  tierSuffix,
} from './published-events.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from './scenarios.ts';

export const WORKER_ID = 7n;
export const BLOCK_SIZE = 4;

/** Tokens of three blocks. */
export const A: readonly number[] = [1, 2, 3, 4];
export const B: readonly number[] = [5, 6, 7, 8];
export const C: readonly number[] = [9, 10, 11, 12];

type Hash = number | bigint;

/** One engine event in map form, by its wire names. */
export type EngineEvent = Readonly<Record<string, unknown>>;

export interface RemoveOptions {
  /** `GPU` if absent; null is a nil on the wire. */
  readonly medium?: string | null;
  readonly group?: number;
}

export interface StoreOptions extends RemoveOptions {
  readonly parent?: Hash;
  /** Where any tokens will do, each block gets some that follow from its hash. */
  readonly tokens?: readonly (number | readonly number[])[];
  readonly size?: number;
  readonly kind?: string;
  readonly lora?: string;
  readonly salt?: string;
}

/** BlockStored: root blocks unless `parent` is given. */
export function St(hashes: Hash | readonly Hash[], options: StoreOptions = {}): EngineEvent {
  const blockHashes = hashesOf(hashes);
  const { parent, tokens = blockHashes.flatMap(tokensFor), size = BLOCK_SIZE } = options;
  const { medium = 'GPU', group, kind, lora, salt } = options;
  return {
    type: 'BlockStored',
    block_hashes: blockHashes,
    parent_block_hash: parent === undefined ? null : BigInt(parent),
    token_ids: tokens,
    block_size: size,
    medium,
    ...(lora !== undefined && { lora_name: lora }),
    ...(salt !== undefined && { cache_salt: salt }),
    ...(group !== undefined && { group_idx: group }),
    ...(kind !== undefined && { kv_cache_spec_kind: kind }),
  };
}

/** BlockRemoved. */
export function Rm(hashes: Hash | readonly Hash[], options: RemoveOptions = {}): EngineEvent {
  const { medium = 'GPU', group } = options;
  return {
    type: 'BlockRemoved',
    block_hashes: hashesOf(hashes),
    medium,
    ...(group !== undefined && { group_idx: group }),
  };
}

/** AllBlocksCleared. */
export const Clr: EngineEvent = { type: 'AllBlocksCleared' };

function hashesOf(hashes: Hash | readonly Hash[]): bigint[] {
  return [hashes].flat().map(BigInt);
}

/** Some tokens that differ from block to block. */
function tokensFor(hash: bigint): number[] {
  const first = Number(hash & 0xffff_fffn) * BLOCK_SIZE;
  return Array.from({ length: BLOCK_SIZE }, (_, index) => first + index);
}

const POSITIONS: Readonly<Record<string, readonly string[]>> = {
  BlockStored: [
    'type',
    'block_hashes',
    'parent_block_hash',
    'token_ids',
    'block_size',
    'lora_id',
    'medium',
    'lora_name',
    'extra_keys',
    'group_idx',
    'kv_cache_spec_kind',
    'kv_cache_spec_sliding_window',
    'locality',
    'ownership',
  ],
  BlockRemoved: ['type', 'block_hashes', 'medium', 'group_idx'],
  AllBlocksCleared: ['type'],
};

/** The event as an array of `length` elements, nil for each field that it does not have. */
export function positional(event: EngineEvent, length: number): unknown[] {
  const fields = POSITIONS[String(event.type)] ?? [];
  return fields.slice(0, length).map((field) => event[field] ?? null);
}

const packr = new Packr({ useRecords: false, variableMapSize: true });

export interface MessageOptions {
  /** `data_parallel_rank`, 0 if absent; null is a nil on the wire. */
  readonly rank?: number | null;
  readonly topic?: string;
}

/** One engine message: `[topic, sequence, [time, events, data_parallel_rank]]`. */
export function f(
  sequence: Hash,
  events: readonly unknown[],
  { rank = 0, topic = '' }: MessageOptions = {},
): Buffer[] {
  return message(sequence, packr.pack([1.5, events, rank]), topic);
}

/** One engine message of any payload. */
export function message(sequence: Hash, payload: Uint8Array, topic = ''): Buffer[] {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sequence));
  return [Buffer.from(topic), number, Buffer.from(payload)];
}

/** MessagePack as a JavaScript engine would write it; a Map keeps its keys, whatever they are. */
export function packed(value: unknown): Buffer {
  return packr.pack(value);
}

const RIG = {
  ...PLAIN_SETTINGS,
  kv_block_size: BLOCK_SIZE,
  worker_id: String(WORKER_ID),
};

/** The pipeline as all trials have it: `safe`, worker id 7, block size 4, no batch timer. */
export function trialConfig(): PipelineConfig {
  return pipelineConfigOf(RIG, 'safe');
}

/** The rig without sockets, on a clock of its own that starts at 0. */
export class Trial {
  readonly #relay: InProcessRelay;
  #seen = 0;

  constructor(config: Partial<PipelineConfig> = {}) {
    this.#relay = new InProcessRelay({ ...trialConfig(), ...config });
  }

  get metrics(): RelayMetrics {
    return this.#relay.metrics;
  }

  /** What came out of these messages alone. */
  send(...messages: readonly Buffer[][]): string[] {
    return this.events(...messages).map(shown);
  }

  /** As send(), with everything that the events hold. */
  events(...messages: readonly Buffer[][]): PublishedEvent[] {
    for (const frames of messages) this.#relay.push(frames);
    return this.#takeNew();
  }

  /** What came out because time passed. */
  advance(ms: number): string[] {
    this.#relay.advance(ms);
    return this.#takeNew().map(shown);
  }

  /** All payloads so far, as bytes. */
  get payloads(): Buffer[] {
    return this.#relay.published.map(({ payload }) => payload);
  }

  /** What a router holds now, `101` on the device, `101@disk` elsewhere, rank by rank in order. */
  get index(): string[] {
    const { blocks } = this.#relay.indexer;
    const events = dumpOf(blocks);
    return blocks.dpRanks.flatMap((rank) =>
      STORAGE_TIERS.flatMap((tier) => {
        const own = events.filter((event) => event.rank === rank && event.tier === tier);
        const hashes = own.flatMap((event) => event.hashes).sort((a, b) => (a < b ? -1 : 1));
        return hashes.map((hash) => `${rank === 0 ? '' : `r${rank}:`}${hash}${tierSuffix(tier)}`);
      }),
    );
  }

  #takeNew(): PublishedEvent[] {
    const payloads = this.payloads.slice(this.#seen);
    this.#seen += payloads.length;
    return payloads.flatMap((payload) => eventsOf(payload));
  }
}

/** The blocks that a fresh relay publishes for this one event. */
export function blocksOf(event: unknown, config: Partial<PipelineConfig> = {}): PublishedBlock[] {
  return new Trial(config).events(f(0, [event])).flatMap(({ blocks }) => blocks);
}

/** The tokens hash that a fresh relay publishes for this store of one block. */
export function tokensHash(event: unknown, config: Partial<PipelineConfig> = {}): bigint {
  const [block, ...others] = blocksOf(event, config);
  if (block === undefined || others.length > 0) throw new Error('not a store of one block');
  return block.tokensHash;
}
