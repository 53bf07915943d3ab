/**
 * CoordinatorReader: the body of `POST /events`, as LMCache's MP servers send it to their coordinator.
 *
 * In/out   JSON bytes; checked batches in their order, or what is wrong with the first that is none.
 * Whole    one bad batch refuses its request, as the real coordinator does: what is missing then shows
 *          as a gap in the numbers.
 * Fields   unknown ones are ignored, those with a default there may be left out.
 * Bounds   depth, lists and maps, pairs of a map, batches, entries, tokens of an entry, characters of a name. Never throws.
 * Source   LMCache 0.5.6, lmcache/v1/mp_coordinator/api.py and schemas.py.
 */
import { isUtf8 } from 'node:buffer';
import {
  CACHE_EVENT_TYPES,
  type CacheBatch,
  type CacheEntry,
  type CacheEventType,
} from './cache-batch.ts';
import { type JsonBounds, jsonExcess } from './json-size.ts';

export interface CoordinatorFault {
  readonly reason: 'json' | 'batch_shape' | 'oversize';
  /** Path of the field, such as `batches.0.seq`. */
  readonly at: string;
  readonly message: string;
}

const MAX_BATCHES = 10_000;
const MAX_ENTRIES = 200_000;
const MAX_TOKENS = 65_536;
const MAX_NAME_CHARACTERS = 256;
const MAX_MODEL_CHARACTERS = 1024;
const MAX_SALT_CHARACTERS = 128;
const MAX_HASH_CHARACTERS = 256;
const MAX_TOKEN_ID = 0xffff_ffff;
/** 128 TiB: what a holder's entry has bits for. */
const MAX_SIZE_BYTES = 2 ** 47 - 1;
const NO_TOKENS: readonly number[] = [];
/** What all batches and entries have that the bounds below allow, and pairs for fields that are not known yet. */
const JSON_BOUNDS: JsonBounds = {
  levels: 8,
  containers: 2 + MAX_BATCHES * 2 + MAX_ENTRIES * 3,
  pairsOfOne: 64,
};

type Fields = Readonly<Record<string, unknown>>;

export class CoordinatorReader {
  #fault: CoordinatorFault | null = null;
  #entries = 0;

  read(body: Buffer): readonly CacheBatch[] | CoordinatorFault {
    this.#fault = null;
    this.#entries = 0;
    if (!isUtf8(body)) return faultOf('json', 'body', 'no UTF-8');
    const excess = jsonExcess(body, JSON_BOUNDS);
    if (excess !== null) return faultOf('oversize', 'body', `more than ${excess}`);
    let value: unknown;
    try {
      value = JSON.parse(body.toString('utf8'));
    } catch {
      return faultOf('json', 'body', 'no JSON');
    }
    if (!isFields(value)) return faultOf('batch_shape', 'body', 'no map');
    const { batches = [] } = value;
    if (!Array.isArray(batches)) return faultOf('batch_shape', 'batches', 'no list');
    if (batches.length > MAX_BATCHES) {
      return faultOf('oversize', 'batches', `more than ${MAX_BATCHES}`);
    }
    const read: CacheBatch[] = [];
    for (const [index, batch] of batches.entries()) {
      read.push(this.#batch(batch, `batches.${index}`));
      if (this.#fault !== null) return this.#fault;
    }
    return read;
  }

  #batch(value: unknown, at: string): CacheBatch {
    const fields = this.#fields(value, at);
    const eventType = this.#eventType(fields.event_type, `${at}.event_type`);
    const backend = this.#name(fields.backend, `${at}.backend`, eventType === 'access');
    const { tier, entries = [], shared = false } = fields;
    if (tier !== 'l1' && tier !== 'l2') this.#refuse(`${at}.tier`, 'neither l1 nor l2');
    if (typeof shared !== 'boolean') this.#refuse(`${at}.shared`, 'no bool');
    if (fields.ts !== undefined && !isAtLeast(fields.ts, 0)) this.#refuse(`${at}.ts`, 'no time');
    const isConfig = eventType === 'config';
    return {
      instanceId: this.#name(fields.instance_id, `${at}.instance_id`),
      incarnation: this.#integer(fields.incarnation, `${at}.incarnation`, 0),
      seq: this.#integer(fields.seq, `${at}.seq`, 1),
      eventType,
      tier: tier === 'l2' ? 'l2' : 'l1',
      backend,
      entries: this.#list(entries, `${at}.entries`, isConfig),
      shared: shared === true,
      capacityBytes: this.#integer(fields.capacity_bytes, `${at}.capacity_bytes`, 0, 0),
      capacityRevision: this.#integer(fields.capacity_revision, `${at}.capacity_revision`, 0, 0),
    };
  }

  #list(value: unknown, at: string, isConfig: boolean): CacheEntry[] {
    if (!Array.isArray(value)) {
      this.#refuse(at, 'no list');
      return [];
    }
    if (isConfig && value.length > 0) this.#refuse(at, 'a config has none');
    this.#entries += value.length;
    if (this.#entries > MAX_ENTRIES) {
      this.#fault ??= faultOf('oversize', at, `more than ${MAX_ENTRIES} in one request`);
    }
    const entries: CacheEntry[] = [];
    for (let index = 0; index < value.length && this.#fault === null; index++) {
      entries.push(this.#entry(value[index], `${at}.${index}`));
    }
    return entries;
  }

  #entry(value: unknown, at: string): CacheEntry {
    const fields = this.#fields(value, at);
    const key = this.#fields(fields.key, `${at}.key`);
    const hashHex = this.#text(key.chunk_hash_hex, `${at}.key.chunk_hash_hex`, MAX_HASH_CHARACTERS);
    if (!/^(?:[0-9a-fA-F]{2})+$/.test(hashHex)) this.#refuse(`${at}.key.chunk_hash_hex`, 'no hex');
    const modelName = this.#text(key.model_name, `${at}.key.model_name`, MAX_MODEL_CHARACTERS);
    if (modelName.includes('@')) this.#refuse(`${at}.key.model_name`, 'holds @');
    const { cache_salt = '' } = key;
    const cacheSalt = this.#text(cache_salt, `${at}.key.cache_salt`, MAX_SALT_CHARACTERS);
    if (/[@/\\\0]/.test(cacheSalt)) this.#refuse(`${at}.key.cache_salt`, 'holds @, /, \\ or NUL');
    return {
      hashHex: hashHex.toLowerCase(),
      modelName,
      kvRank: this.#integer(key.kv_rank, `${at}.key.kv_rank`, Number.MIN_SAFE_INTEGER),
      objectGroupId: this.#integer(key.object_group_id, `${at}.key.object_group_id`, 0, 0),
      cacheSalt,
      sizeBytes: this.#integer(fields.size_bytes, `${at}.size_bytes`, 0, 0, MAX_SIZE_BYTES),
      tokenIds: this.#tokens(fields.token_ids, `${at}.token_ids`),
      tokenOffset: this.#integer(fields.token_offset, `${at}.token_offset`, -1, -1),
    };
  }

  #tokens(value: unknown, at: string): readonly number[] {
    if (value === undefined) return NO_TOKENS;
    if (!Array.isArray(value)) {
      this.#refuse(at, 'no list');
      return NO_TOKENS;
    }
    if (value.length > MAX_TOKENS) {
      this.#fault ??= faultOf('oversize', at, `more than ${MAX_TOKENS} tokens`);
    }
    if (!value.every(isTokenId)) this.#refuse(at, 'not all of them are token ids');
    return value as number[];
  }

  #fields(value: unknown, at: string): Fields {
    if (isFields(value)) return value;
    this.#refuse(at, 'no map');
    return {};
  }

  #eventType(value: unknown, at: string): CacheEventType {
    const known = CACHE_EVENT_TYPES.find((type) => type === value);
    if (known === undefined) this.#refuse(at, `none of ${CACHE_EVENT_TYPES.join(', ')}`);
    return known ?? 'access';
  }

  #name(value: unknown, at: string, mayBeEmpty = false): string {
    const text = this.#text(value, at, MAX_NAME_CHARACTERS);
    if (text === '' && !mayBeEmpty) this.#refuse(at, 'empty');
    return text;
  }

  #text(value: unknown, at: string, maxCharacters: number): string {
    const isText = typeof value === 'string' && value.length <= maxCharacters;
    // Half a surrogate pair is no text that could be told on.
    if (isText && !/\p{Cs}/u.test(value)) return value;
    this.#refuse(at, `no text of up to ${maxCharacters} characters`);
    return '';
  }

  #integer(
    value: unknown,
    at: string,
    min: number,
    fallback?: number,
    max = Number.MAX_SAFE_INTEGER,
  ): number {
    const given = value === undefined ? fallback : value;
    if (Number.isSafeInteger(given) && (given as number) >= min && (given as number) <= max)
      return given as number;
    this.#refuse(at, `no integer from ${min} to ${max}`);
    return min;
  }

  /** The first fault is told. */
  #refuse(at: string, message: string): void {
    this.#fault ??= faultOf('batch_shape', at, message);
  }
}

function faultOf(
  reason: CoordinatorFault['reason'],
  at: string,
  message: string,
): CoordinatorFault {
  return { reason, at, message };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAtLeast(value: unknown, min: number): boolean {
  return typeof value === 'number' && value >= min;
}

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TOKEN_ID;
}
