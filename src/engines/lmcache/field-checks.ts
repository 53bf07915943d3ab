/** What a value must be for each type of the contracts, and what a GPU stream's recorder has made of it. */
import type { FieldType } from './contracts.ts';

type Check = (value: unknown) => boolean;

const isInt: Check = (value) => Number.isSafeInteger(value) || typeof value === 'bigint';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isBytes: Check = (value) => value instanceof Uint8Array;
const isMap: Check = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const mapWith =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isMap(value) &&
    Object.entries(fields).every(([name, check]) =>
      check((value as Record<string, unknown>)[name]),
    );

const CHECKS: Readonly<Record<FieldType, Check>> = {
  int: isInt,
  float: (value) => Number.isFinite(value),
  bool: (value) => typeof value === 'boolean',
  text: isText,
  keys: listOf(
    mapWith({
      chunk_hash: isBytes,
      model_name: isText,
      kv_rank: isInt,
      object_group_id: isInt,
      cache_salt: isText,
    }),
  ),
  objectMetas: listOf(mapWith({ size_bytes: isCount, backend: isText })),
  saltCounts: (value) => isMap(value) && Object.values(value as object).every(isCount),
  ints: listOf(isInt),
  texts: listOf(isText),
  intLists: listOf(listOf(isInt)),
  hashes: listOf(isBytes),
  hashesOrNil: listOf((value) => value === null || isBytes(value)),
  blockRecords: listOf(
    mapWith({ req_id: isText, new_block_ids: listOf(isInt), new_token_ids: listOf(isInt) }),
  ),
  phaseSamples: listOf(Array.isArray),
  capacitySnapshot: mapWith({ modules: listOf(isMap) }),
  map: isMap,
};

export function fits(type: FieldType, value: unknown): boolean {
  return CHECKS[type](value);
}

/** As the recorder of a GPU stream hands nil on. */
const NIL_TEXT = 'None';

/** Undoes what the recorder of a GPU stream does to values that are neither integer nor text. */
export function fromStream(type: FieldType, value: unknown): unknown {
  if (type === 'text') return value;
  if (value === NIL_TEXT) return null;
  if (type === 'bool' && (value === 0 || value === 1)) return value === 1;
  if (type === 'float' && typeof value === 'string' && value.trim() !== '') return Number(value);
  return value;
}
