// Reads engine events of the plain form, many in a call: what nearly all events of an engine are. It
// takes an event only where the readers in src/engines would take the same from it. The first one that
// is not plain ends the call, whatever is odd about it: those readers say what.
//
// plain       array or map: no adapter, salt, session, image, owner or extra key; an integer where one
//             belongs; texts among those that were registered, no longer than 31 bytes
// record      [0] type: 1 stored, 2 removed, 3 cleared   [4] parent, low     [8] block size
//  12 u32     [1] flags                                  [5] parent, high    [9] medium, text code
//             [2] hashes, address                        [6] tokens, address [10] group
//             [3] hashes, count                          [7] tokens, count   [11] kind, text code
// run         engines remove block by block: a remove of one block takes in the removes behind it whose
//             bytes differ in the hash alone, and says in the upper half of [1] how many they are
// lists       one after the other from `room` on, each aligned to 8

import { negative, readBigrams, readHash, readHashes, readInteger, readTokens } from './msgpack';
import { TRUNCATED, value } from './msgpack';
import { textCode } from './texts';

const RECORD_BYTES: usize = 48;

const STORED: u32 = 1;
const REMOVED: u32 = 2;
const CLEARED: u32 = 3;

const HAS_PARENT: u32 = 1;
const IS_EAGLE: u32 = 2;
const HAS_LORA_ID: u32 = 4;
const HAS_GROUP: u32 = 8;
const IS_LOCAL: u32 = 16;
// Of a map, what stood in it.
const HAS_HASHES: u32 = 1 << 16;
const HAS_TOKENS: u32 = 1 << 17;
const HAS_BLOCK_SIZE: u32 = 1 << 18;

// Codes of texts, in the order of src/engines/known-texts.ts.
const TEXT_STORED: u32 = 1;
const TEXT_REMOVED: u32 = 2;
const TEXT_CLEARED: u32 = 3;
const TEXT_LOCAL: u32 = 4;
const KEY_TYPE: u32 = 5;
const KEY_BLOCK_HASHES: u32 = 6;
const KEY_PARENT: u32 = 7;
const KEY_TOKEN_IDS: u32 = 8;
const KEY_BLOCK_SIZE: u32 = 9;
const KEY_LORA_ID: u32 = 10;
const KEY_MEDIUM: u32 = 11;
const KEY_EXTRA_KEYS: u32 = 12;
const KEY_GROUP: u32 = 13;
const KEY_KIND: u32 = 14;
const KEY_WINDOW: u32 = 15;
const KEY_LOCALITY: u32 = 16;
/** This one and all up to the last are plain where they are nil. */
const KEY_FIRST_NIL: u32 = 17;
const KEY_LAST_NIL: u32 = 21;

const NIL: u32 = 0xc0;

/** Removes that one takes in at most. */
const MAX_JOINED: u32 = 0xffff;

/** More are not read at all. */
const MAX_EXTRA_KEY_LISTS: u32 = 1 << 18;

let end: usize = 0;
let takesBytes: u32 = 0;
/** Where the next list goes, and where there is no more room. */
let room: usize = 0;
let roomEnd: usize = 0;
/** The event being read. */
let record: usize = 0;
let flags: u32 = 0;

/**
 * Reads up to `count` events to `records`; returns how many records that makes. To `state`: the address
 * after them, where their lists end, and how many events they are.
 */
export function readEvents(
  at: usize,
  payloadEnd: usize,
  count: u32,
  bytesAreHashes: u32,
  firstRoom: usize,
  lastRoom: usize,
  records: usize,
  state: usize,
): u32 {
  end = payloadEnd;
  takesBytes = bytesAreHashes;
  room = firstRoom;
  roomEnd = lastRoom;
  record = records;
  let taken: u32 = 0;
  let written: u32 = 0;
  for (; taken < count; taken++) {
    const roomBefore = room;
    clearRecord();
    flags = 0;
    const next = readEvent(at);
    if (next == 0) {
      room = roomBefore;
      break;
    }
    const joined = isSingleRemove() ? joinRun(at, next, min(count - taken - 1, MAX_JOINED)) : 0;
    store<u32>(record, (flags & 0xffff) | (joined << 16), 4);
    taken += joined;
    at = next + (joined as usize) * (next - at);
    record += RECORD_BYTES;
    written++;
  }
  store<u32>(state, at as u32);
  store<u32>(state, room as u32, 4);
  store<u32>(state, taken, 8);
  return written;
}

/** Marker of the hash that was read last where a list was one hash of full width; else 0. */
let singleHash: usize = 0;

/** Whether the record is a remove of one block, whose list can grow. */
function isSingleRemove(): bool {
  const list = load<u32>(record, 8) as usize;
  return (
    load<u32>(record) == REMOVED && singleHash != 0 && load<u32>(record, 12) == 1 && list + 8 == room
  );
}

/**
 * Appends to the record the hashes of up to `most` events behind the one from `first` to `next`, as long
 * as each has its bytes, but for the hash; returns how many.
 */
function joinRun(first: usize, next: usize, most: u32): u32 {
  const length = next - first;
  const hashAt = singleHash + 1 - first;
  const tail = hashAt + 8;
  let joined: u32 = 0;
  for (let at = next; joined < most; at += length) {
    if (length > end - at || room + 8 > roomEnd) break;
    if (!areEqual(first, at, hashAt) || !areEqual(first + tail, at + tail, length - tail)) break;
    store<u64>(room, bswap<u64>(load<u64>(at + hashAt)));
    room += 8;
    joined++;
  }
  store<u32>(record, joined + 1, 12);
  return joined;
}

// @ts-ignore: decorator
@inline
function areEqual(a: usize, b: usize, length: usize): bool {
  let i: usize = 0;
  for (; i + 8 <= length; i += 8) {
    if (load<u64>(a + i) != load<u64>(b + i)) return false;
  }
  for (; i < length; i++) {
    if (load<u8>(a + i) != load<u8>(b + i)) return false;
  }
  return true;
}

// @ts-ignore: decorator
@inline
function clearRecord(): void {
  const zeros = i64x2.splat(0);
  v128.store(record, zeros);
  v128.store(record, zeros, 16);
  v128.store(record, zeros, 32);
}

/** Reads the event at `at`; returns the address after it, 0 where it is not plain. */
function readEvent(at: usize): usize {
  if (at >= end) return 0;
  const marker = load<u8>(at) as u32;
  if (marker >> 4 == 8) return readMap(at + 1, marker & 15);
  if (marker == 0xde && at + 3 <= end) return readMap(at + 3, bswap<u16>(load<u16>(at, 1)) as u32);
  return marker >> 4 == 9 ? readArray(at + 1, marker & 15) : 0;
}

function readArray(at: usize, count: u32): usize {
  if (count == 0) return 0;
  const tag = codeAt(at);
  at = afterText;
  if (tag == TEXT_STORED) {
    if (count < 5) return 0;
    store<u32>(record, STORED);
    at = blockHashes(at);
    if (at != 0) at = parent(at);
    if (at != 0) at = tokenIds(at);
    if (at != 0) at = blockSize(at);
    if (at != 0 && count > 5) at = loraId(at);
    if (at != 0 && count > 6) at = text(at, 36);
    if (at != 0 && count > 7) at = nil(at);
    if (at != 0 && count > 8) at = extraKeys(at);
    return at != 0 && count > 9 ? readTail(at, count - 9) : at;
  }
  if (tag == TEXT_REMOVED) {
    if (count < 2) return 0;
    store<u32>(record, REMOVED);
    at = blockHashes(at);
    if (at != 0 && count > 2) at = text(at, 36);
    return at != 0 && count > 3 ? readTail(at, count - 3) : at;
  }
  if (tag != TEXT_CLEARED || count > 2) return 0;
  store<u32>(record, CLEARED);
  return count == 2 ? nil(at) : at;
}

/** Group, kind, window, locality, owner, as many as there are; see src/engines/event-tail.ts. */
function readTail(at: usize, count: u32): usize {
  if (count > 5) return 0;
  at = group(at);
  if (at != 0 && count > 1) at = text(at, 44);
  if (at != 0 && count > 2) {
    // Of so few slots the first integer is the group, wherever it stands.
    const isWindow = count > 3 || (flags & HAS_GROUP) != 0;
    at = isWindow ? window(at) : nil(at);
  }
  if (at != 0 && count > 3) at = locality(at);
  return at != 0 && count > 4 ? nil(at) : at;
}

function readMap(at: usize, pairs: u32): usize {
  let tag: u32 = 0;
  for (let pair: u32 = 0; pair < pairs; pair++) {
    const key = codeAt(at);
    at = afterText;
    if (key == KEY_TYPE) {
      tag = codeAt(at);
      at = tag != 0 ? afterText : 0;
    } else {
      at = readField(at, key);
    }
    if (at == 0) return 0;
  }
  const present = flags & (HAS_HASHES | HAS_TOKENS | HAS_BLOCK_SIZE);
  if (tag == TEXT_STORED && present == (HAS_HASHES | HAS_TOKENS | HAS_BLOCK_SIZE)) {
    store<u32>(record, STORED);
  } else if (tag == TEXT_REMOVED && present == HAS_HASHES) {
    store<u32>(record, REMOVED);
  } else if (tag == TEXT_CLEARED && present == 0) {
    store<u32>(record, CLEARED);
  } else {
    return 0;
  }
  return at;
}

/** The value of `key`; the last of equal keys counts. */
function readField(at: usize, key: u32): usize {
  switch (key) {
    case KEY_BLOCK_HASHES:
      return blockHashes(at);
    case KEY_PARENT:
      return parent(at);
    case KEY_TOKEN_IDS:
      return tokenIds(at);
    case KEY_BLOCK_SIZE:
      return blockSize(at);
    case KEY_LORA_ID:
      return loraId(at);
    case KEY_MEDIUM:
      return text(at, 36);
    case KEY_EXTRA_KEYS:
      return extraKeys(at);
    case KEY_GROUP:
      return group(at);
    case KEY_KIND:
      return text(at, 44);
    case KEY_WINDOW:
      return window(at);
    case KEY_LOCALITY:
      return locality(at);
    default:
      return key >= KEY_FIRST_NIL && key <= KEY_LAST_NIL ? nil(at) : 0;
  }
}

let afterText: usize = 0;

/** Code of the text at `at`, whose end goes to `afterText`; 0 where it is no known short text. */
function codeAt(at: usize): u32 {
  if (at >= end) return 0;
  const marker = load<u8>(at) as u32;
  const length = (marker & 31) as usize;
  afterText = at + 1 + length;
  return marker >> 5 == 5 && length > 0 && afterText <= end ? textCode(at + 1, length) : 0;
}

/** A known text, whose code goes into the record, or nil. */
function text(at: usize, offset: usize): usize {
  const code = codeAt(at);
  store<u32>(record + offset, code);
  return code != 0 ? afterText : nil(at);
}

// @ts-ignore: decorator
@inline
function nil(at: usize): usize {
  return at < end && load<u8>(at) == NIL ? at + 1 : 0;
}

let listCount: u32 = 0;

/** Opens a list; its elements' count, which the payload has bytes for, goes to `listCount`. */
function openList(at: usize): usize {
  if (at >= end) return 0;
  const marker = load<u8>(at) as u32;
  let next = at + 1;
  listCount = marker & 15;
  if (marker == 0xdc && at + 3 <= end) {
    next = at + 3;
    listCount = bswap<u16>(load<u16>(at, 1)) as u32;
  } else if (marker == 0xdd && at + 5 <= end) {
    next = at + 5;
    listCount = bswap<u32>(load<u32>(at, 1));
  } else if (marker >> 4 != 9) {
    return 0;
  }
  return (listCount as usize) <= end - next ? next : 0;
}

/** A u64 or i64 in 9 bytes, which as hashes are one: equal bits. */
// @ts-ignore: decorator
@inline
function isWideInteger(marker: u32): bool {
  return marker == 0xcf || marker == 0xd3;
}

function blockHashes(at: usize): usize {
  at = openList(at);
  const bytes = (listCount as usize) << 3;
  if (at == 0 || bytes > roomEnd - room) return 0;
  const next = readHashes(at, end, listCount, room, takesBytes);
  if (next <= TRUNCATED) return 0;
  singleHash = listCount == 1 && isWideInteger(load<u8>(at)) ? at : 0;
  store<u32>(record, room as u32, 8);
  store<u32>(record, listCount, 12);
  room += bytes;
  flags |= HAS_HASHES;
  return next;
}

function tokenIds(at: usize): usize {
  at = openList(at);
  const count = listCount;
  // Pairs take one token more than there are pairs.
  const bytes = (((count as usize) + 2) & ~1) << 2;
  if (at == 0 || bytes > roomEnd - room) return 0;
  const marker = count > 0 ? (load<u8>(at) as u32) : 0;
  const arePairs = marker >> 4 == 9 || marker == 0xdc || marker == 0xdd;
  const next = arePairs ? readBigrams(at, end, count, room) : readTokens(at, end, count, room);
  if (next <= TRUNCATED) return 0;
  store<u32>(record, room as u32, 24);
  store<u32>(record, count + (arePairs ? 1 : 0), 28);
  room += bytes;
  flags = (flags & ~IS_EAGLE) | HAS_TOKENS | (arePairs ? IS_EAGLE : 0);
  return next;
}

function parent(at: usize): usize {
  flags &= ~HAS_PARENT;
  if (nil(at) != 0) return at + 1;
  const next = readHash(at, end, takesBytes);
  if (next <= TRUNCATED) return 0;
  store<u64>(record, value, 16);
  flags |= HAS_PARENT;
  return next;
}

/** An integer from 0 to `most`, to `value`. */
function unsigned(at: usize, most: u64): usize {
  if (at >= end) return 0;
  const next = readInteger(at, end);
  return next > TRUNCATED && !negative && value <= most ? next : 0;
}

function blockSize(at: usize): usize {
  const next = unsigned(at, 0x7fffffff);
  store<u32>(record, value as u32, 32);
  flags |= HAS_BLOCK_SIZE;
  return next;
}

function loraId(at: usize): usize {
  flags &= ~HAS_LORA_ID;
  if (nil(at) != 0) return at + 1;
  if (at >= end || load<u8>(at) > 0x7f) return 0;
  if (load<u8>(at) != 0) flags |= HAS_LORA_ID;
  return at + 1;
}

function group(at: usize): usize {
  flags &= ~HAS_GROUP;
  if (nil(at) != 0) return at + 1;
  const next = unsigned(at, 0xffffffff);
  store<u32>(record, value as u32, 40);
  flags |= HAS_GROUP;
  return next;
}

/** The sliding window, which no rule looks at. */
function window(at: usize): usize {
  return nil(at) != 0 ? at + 1 : unsigned(at, 0xffffffff);
}

function locality(at: usize): usize {
  flags &= ~IS_LOCAL;
  if (nil(at) != 0) return at + 1;
  if (codeAt(at) != TEXT_LOCAL) return 0;
  flags |= IS_LOCAL;
  return afterText;
}

/** Nil, or a list that holds nothing for any block. */
function extraKeys(at: usize): usize {
  if (nil(at) != 0) return at + 1;
  at = openList(at);
  if (at == 0 || listCount > MAX_EXTRA_KEY_LISTS) return 0;
  const next = at + listCount;
  for (; at < next; at++) {
    const marker = load<u8>(at) as u32;
    if (marker != NIL && marker != 0x90) return 0;
  }
  return next;
}
