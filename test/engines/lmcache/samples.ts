/** Events as the real bus carries them: the captures of every type, and made-up metadata that fits a contract. */
import { readFileSync } from 'node:fs';
import type { RawEvent } from '../../../src/engines/lmcache/contract-checker.ts';
import {
  CONTRACTS,
  type EventName,
  type FieldContract,
  type FieldType,
} from '../../../src/engines/lmcache/contracts.ts';

export interface Capture {
  readonly name: string;
  readonly event: RawEvent;
}

interface CaptureLine {
  readonly decoded: {
    readonly kind: string;
    readonly name: string;
    readonly event_type: string;
    readonly session_id: string;
    readonly metadata: Readonly<Record<string, unknown>>;
  };
}

/** One event a type of 0.5.6 at least, in an order that pairs starts with ends. */
export function captures(): readonly Capture[] {
  const file = new URL('../../vectors/engines/lmcache-0.5.6.jsonl', import.meta.url);
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line, reviveBytes) as CaptureLine).decoded)
    .filter(({ kind }) => kind === 'bus-event')
    .map(({ name, event_type, session_id, metadata }, index) => ({
      name,
      event: { type: event_type, timestamp: 1000 + index, sessionId: session_id, metadata },
    }));
}

function reviveBytes(_key: string, value: unknown): unknown {
  const hex = (value as { $bytes?: string } | null)?.$bytes;
  return typeof hex === 'string' ? Buffer.from(hex, 'hex') : value;
}

const KEY = {
  chunk_hash: Buffer.alloc(32, 7),
  model_name: 'm1',
  kv_rank: 0,
  object_group_id: 0,
  cache_salt: '',
};

const VALUES: Readonly<Record<FieldType, unknown>> = {
  int: 3,
  float: 0.5,
  bool: true,
  text: 'text',
  keys: [KEY],
  objectMetas: [{ size_bytes: 16, backend: 'dram' }],
  saltCounts: { '': 1, tenant: 2 },
  ints: [1, 2],
  texts: ['a'],
  intLists: [[1], []],
  hashes: [Buffer.alloc(4)],
  hashesOrNil: [null, Buffer.alloc(4)],
  blockRecords: [{ req_id: 'r', new_block_ids: [1], new_token_ids: [1, 2] }],
  phaseSamples: [[1, 1, 0, 2, 4, 'k', 1, 2]],
  capacitySnapshot: { modules: [] },
  map: { n: 1 },
};

/** A value of every type that is of none of the others that could be taken for it. */
export const WRONG_VALUES: Readonly<Record<FieldType, unknown>> = {
  int: 1.5,
  float: 'half',
  bool: 2,
  text: 7,
  keys: [KEY, { ...KEY, cache_salt: null }],
  objectMetas: [{ size_bytes: -1, backend: 'dram' }],
  saltCounts: { tenant: 1.5 },
  ints: [1, 'two'],
  texts: ['a', 1],
  intLists: [[1], 2],
  hashes: ['00'],
  hashesOrNil: [1],
  blockRecords: [{ req_id: 'r', new_block_ids: 1, new_token_ids: [] }],
  phaseSamples: [1],
  capacitySnapshot: { modules: 1 },
  map: [1],
};

function goodValue({ type, values }: FieldContract): unknown {
  return values?.[0] ?? VALUES[type];
}

/** An event that has every key of every version. */
export function fullEvent(name: EventName): RawEvent {
  const { value, fields } = CONTRACTS[name];
  const entries = Object.entries(fields).map(([field, contract]) => [field, goodValue(contract)]);
  return { type: value, timestamp: 1, sessionId: 's1', metadata: Object.fromEntries(entries) };
}

export function without(event: RawEvent, field: string): RawEvent {
  const { [field]: _gone, ...metadata } = event.metadata;
  return { ...event, metadata };
}

export function having(event: RawEvent, metadata: Readonly<Record<string, unknown>>): RawEvent {
  return { ...event, metadata: { ...event.metadata, ...metadata } };
}
