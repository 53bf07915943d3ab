/** Router events as JSON: every u64 becomes a decimal string, all else stays. */
import { Unpackr } from 'msgpackr';

type Integer = number | bigint;

interface WireBlock {
  readonly block_hash: Integer;
  readonly tokens_hash: Integer;
  readonly mm_extra_info: unknown;
}

interface WireStore {
  readonly parent_hash: Integer | null;
  readonly start_position: number | null;
  readonly blocks: readonly WireBlock[];
}

interface WireEvent {
  readonly worker_id: Integer;
  readonly storage_tier: string;
  readonly event: {
    readonly event_id: Integer;
    readonly data:
      | 'cleared'
      | { readonly stored: WireStore }
      | { readonly removed: { readonly block_hashes: readonly Integer[] } };
    readonly dp_rank: number;
  };
}

/** A text ends with the event that brings it to as many. */
const TEXT_LINES = 512;

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true });

/** Names of the fields that hold a u64. */
const U64_FIELDS: ReadonlySet<string> = new Set([
  'worker_id',
  'event_id',
  'parent_hash',
  'block_hash',
  'tokens_hash',
  'block_hashes',
  'mm_hash',
  'offsets',
]);

/** One encoded event as a value for JSON. The encoding is the relay's own. */
export function routerEventJson(encoded: Uint8Array): unknown {
  return withTexts(unpackr.unpack(encoded), false);
}

function withTexts(value: unknown, isU64: boolean): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return isU64 ? value.toString() : value;
  if (Array.isArray(value)) return value.map((item) => withTexts(item, isU64));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    withTexts(item, U64_FIELDS.has(key)),
  ]);
  return Object.fromEntries(entries);
}

/**
 * The blocks of a dump's encoded events, a JSON line each, in texts of no more than it takes some hundred
 * microseconds to make: between two of them others can have the event loop.
 */
export function* blockLines(encoded: Uint8Array): Generator<string, void> {
  for (let start = 0; start < encoded.length; ) {
    const lines: string[] = [];
    let taken = 0;
    unpackr.unpackMultiple(encoded.subarray(start), (value: unknown, _from, end) => {
      addBlockLines(lines, value as WireEvent);
      taken = end ?? 0;
      return lines.length < TEXT_LINES;
    });
    start += taken;
    yield lines.join('');
  }
}

function addBlockLines(lines: string[], { worker_id, storage_tier, event }: WireEvent): void {
  const { data, dp_rank } = event;
  if (data === 'cleared' || !('stored' in data)) return;
  const head = `{"worker_id":"${worker_id}","dp_rank":${dp_rank},"storage_tier":"${storage_tier}"`;
  let parent = data.stored.parent_hash;
  for (const { block_hash, tokens_hash } of data.stored.blocks) {
    const above = parent === null ? 'null' : `"${parent}"`;
    const hashes = `"block_hash":"${block_hash}","tokens_hash":"${tokens_hash}"`;
    lines.push(`${head},"parent_hash":${above},${hashes}}\n`);
    parent = block_hash;
  }
}
