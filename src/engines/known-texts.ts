/**
 * Known texts: tags, keys, media and kinds that every event repeats, found by their bytes, so that no
 * string is made for them: decoding one costs more than finding it. The kernel knows them by code.
 */
import { arena } from '../kernel/arena.ts';
import { views, wasm } from '../kernel/kernel.ts';

const KNOWN = [
  // Those up to `session_id` in the order of src/kernel/assembly/events.ts.
  'BlockStored',
  'BlockRemoved',
  'AllBlocksCleared',
  'LOCAL',
  'type',
  'block_hashes',
  'parent_block_hash',
  'token_ids',
  'block_size',
  'lora_id',
  'medium',
  'extra_keys',
  'group_idx',
  'kv_cache_spec_kind',
  'kv_cache_spec_sliding_window',
  'locality',
  'lora_name',
  'cache_salt',
  'block_mm_infos',
  'ownership',
  'session_id',
  // Other tags and keys.
  'Ignored',
  'lookahead_token_ids',
  'mm_objects',
  'mm_hash',
  'offsets',
  // Values.
  'GPU',
  'DEVICE',
  'CPU',
  'cpu',
  'CPU_PINNED',
  'CPU_TIER1',
  'CPU_TIER2',
  'DISK',
  'NVME',
  'STORAGE',
  'EXTERNAL',
  'NETWORK',
  'REMOTE',
  'SHARED',
  'full_attention',
  'mla_attention',
  'sink_full_attention',
  'sliding_window',
  'sliding_window_mla',
  'mamba',
  'chunked_local_attention',
  'encoder_only_attention',
  'cross_attention',
] as const;

const LONGEST = Math.max(...KNOWN.map((text) => text.length));
const SLOTS = 1024;

interface KnownText {
  readonly text: string;
  readonly bytes: Uint8Array;
}

const table: (readonly KnownText[])[] = Array.from({ length: SLOTS }, () => []);
for (const text of KNOWN) {
  const bytes = Buffer.from(text, 'latin1');
  const slot = slotOf(bytes, 0, bytes.length);
  table[slot] = [...(table[slot] ?? []), { text, bytes }];
  const address = arena.take(bytes.length);
  views.u8.set(bytes, address);
  wasm.addText(address, bytes.length);
}

function slotOf(bytes: Uint8Array, start: number, length: number): number {
  let hash = length;
  for (let index = 0; index < length; index++) {
    hash = (Math.imul(hash, 31) + (bytes[start + index] as number)) | 0;
  }
  return hash & (SLOTS - 1);
}

/** The text of a code of the kernel's; null for 0. */
export function textOfCode(code: number): string | null {
  return code === 0 ? null : (KNOWN[code - 1] as string);
}

/** The known text that these bytes spell, without making a string. */
export function knownText(bytes: Uint8Array, start: number, length: number): string | undefined {
  if (length > LONGEST) return undefined;
  const candidates = table[slotOf(bytes, start, length)] as readonly KnownText[];
  for (const candidate of candidates) {
    if (spells(candidate.bytes, bytes, start, length)) return candidate.text;
  }
  return undefined;
}

function spells(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let index = 0; index < length; index++) {
    if (known[index] !== bytes[start + index]) return false;
  }
  return true;
}
