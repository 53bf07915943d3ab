/**
 * The tail of a positional event: up to five slots whose meaning depends on what stands in them.
 *
 * U  integer of u32    T  text    M  image data (stores only)    X  anything else
 *
 * fixed   group_idx, kv_cache_spec_kind, sliding_window, locality, ownership
 *         where at least four slots are there, none is M, and each holds its type or nil
 * legacy  otherwise: the first U is group_idx, the last T the kind, M the image data
 *
 * Source  ai-dynamo/dynamo 1.6.1. In strict a locality in the third of three slots counts as a kind.
 */
import { diverges } from '../protocol/compat.ts';
import type { MmInfo } from '../protocol/multimodal.ts';
import type { Locality, RawEvent } from '../protocol/native-batch.ts';
import { tryReadMmInfos } from './mm-infos.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

const TAIL_SLOTS = 5;
const FIXED_LAYOUT_MIN_SLOTS = 4;

/** A slot: number is U, string T, array M, null nil, undefined X. */
type Slot = number | string | (MmInfo | null)[] | null | undefined;

/** Reads `count` slots, of which five count. */
export function readTail(reader: MsgpackReader, event: RawEvent, count: number): void {
  const slots: Slot[] = [];
  for (let index = 0; index < count; index++) {
    if (index < TAIL_SLOTS) slots.push(readSlot(reader, event.type === 'stored'));
    else reader.skip();
  }
  if (isFixedLayout(slots)) {
    event.groupIdx = slots[0] as number | null;
    event.specKind = slots[1] as string | null;
    event.locality = localityOf(slots[3] as string | null);
    event.ownership = (slots[4] ?? null) as string | null;
  } else if (diverges(reader.compat, 'locality-tail') && isLocalityText(slots)) {
    applyLegacyLayout(event, slots.slice(0, -1));
    event.locality = localityOf(slots[2] as string);
  } else {
    applyLegacyLayout(event, slots);
  }
}

/** Three slots of which the last is a locality: strict takes it for a kind. */
function isLocalityText(slots: readonly Slot[]): boolean {
  return slots.length === 3 && (slots[2] === 'LOCAL' || slots[2] === 'REMOTE');
}

export function localityOf(text: string | null): Locality | null {
  return text === null || text === 'LOCAL' || text === 'REMOTE' ? text : 'other';
}

function readSlot(reader: MsgpackReader, mayHoldImages: boolean): Slot {
  if (reader.skipNil()) return null;
  if (reader.isText()) return reader.readTextOrUndefined();
  if (reader.isInteger()) {
    const value = reader.readInteger();
    return value >= 0 && value <= 0xffff_ffff ? value : undefined;
  }
  if (mayHoldImages && reader.isArray()) {
    const mmInfos = tryReadMmInfos(reader);
    if (mmInfos !== undefined) return mmInfos;
  }
  reader.skip();
  return undefined;
}

function isFixedLayout(slots: readonly Slot[]): boolean {
  if (slots.length < FIXED_LAYOUT_MIN_SLOTS) return false;
  const [group, kind, window, locality, ownership] = slots;
  return (
    isNilOr(group, 'number') &&
    isNilOr(kind, 'string') &&
    isNilOr(window, 'number') &&
    isNilOr(locality, 'string') &&
    (slots.length < TAIL_SLOTS || isNilOr(ownership, 'string'))
  );
}

function isNilOr(slot: Slot, type: 'number' | 'string'): boolean {
  return slot === null || typeof slot === type;
}

function applyLegacyLayout(event: RawEvent, slots: readonly Slot[]): void {
  for (const slot of slots) {
    if (typeof slot === 'number') event.groupIdx ??= slot;
    else if (typeof slot === 'string') event.specKind = slot;
    else if (Array.isArray(slot)) event.mmInfos = slot;
  }
}
