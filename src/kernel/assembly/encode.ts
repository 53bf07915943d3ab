// Writes the parts of a router event that repeat for every block. Each writer takes the address to
// write at and returns the one after; the caller has reserved the room.
//
// block      83 "block_hash" u64 "tokens_hash" u64 "mm_extra_info" nil        at most 57 bytes
// integers   the smallest unsigned form: fixint, cc, cd, ce, cf

// prettier-ignore
const BLOCK_HASH: usize = memory.data<u8>([
  0x83, 0xaa, 0x62, 0x6c, 0x6f, 0x63, 0x6b, 0x5f, 0x68, 0x61, 0x73, 0x68,
], 8);
// prettier-ignore
const TOKENS_HASH: usize = memory.data<u8>([
  0xab, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x73, 0x5f, 0x68, 0x61, 0x73, 0x68,
], 8);
// prettier-ignore
const MM_EXTRA_INFO_NIL: usize = memory.data<u8>([
  0xad, 0x6d, 0x6d, 0x5f, 0x65, 0x78, 0x74, 0x72, 0x61, 0x5f, 0x69, 0x6e, 0x66, 0x6f, 0xc0, 0x00,
], 16);

// @ts-ignore: decorator
@inline
function put(at: usize, v: u64): usize {
  if (v > 0xffffffff) {
    store<u8>(at, 0xcf);
    store<u64>(at, bswap<u64>(v), 1);
    return at + 9;
  }
  if (v > 0xffff) {
    store<u8>(at, 0xce);
    store<u32>(at, bswap<u32>(v as u32), 1);
    return at + 5;
  }
  if (v > 0xff) {
    store<u8>(at, 0xcd);
    store<u16>(at, bswap<u16>(v as u16), 1);
    return at + 3;
  }
  if (v > 0x7f) {
    store<u8>(at, 0xcc);
    store<u8>(at, v as u8, 1);
    return at + 2;
  }
  store<u8>(at, v as u8);
  return at + 1;
}

export function putU64(at: usize, v: u64): usize {
  return put(at, v);
}

/** Blocks without image data: one map a pair of hashes. */
export function putBlocks(at: usize, hashes: usize, tokensHashes: usize, count: usize): usize {
  const head = load<u64>(BLOCK_HASH);
  const headRest = load<u32>(BLOCK_HASH, 8);
  const middle = load<u64>(TOKENS_HASH);
  const middleRest = load<u32>(TOKENS_HASH, 8);
  const tail = v128.load(MM_EXTRA_INFO_NIL);
  const end = hashes + (count << 3);
  for (; hashes < end; hashes += 8, tokensHashes += 8) {
    store<u64>(at, head);
    store<u32>(at, headRest, 8);
    at = put(at + 12, load<u64>(hashes));
    store<u64>(at, middle);
    store<u32>(at, middleRest, 8);
    at = put(at + 12, load<u64>(tokensHashes));
    // One byte more than the text: the next write, or nothing that counts, lies there.
    v128.store(at, tail);
    at += 15;
  }
  return at;
}

/** The hashes of a remove. */
// @ts-ignore: decorator
@inline
function putHashes(at: usize, hashes: usize, count: usize): usize {
  const end = hashes + (count << 3);
  for (; hashes < end; hashes += 8) at = put(at, load<u64>(hashes));
  return at;
}

/** An event's template: address and bytes of its head, middle, second middle and tail. */
const MIDDLE: usize = 8;
const SECOND_MIDDLE: usize = 16;
const TAIL: usize = 24;

/** Part of a template; what is written beyond it, up to 15 bytes, is written over. */
// @ts-ignore: decorator
@inline
function putPart(at: usize, part: usize): usize {
  const from = load<u32>(part) as usize;
  const bytes = load<u32>(part, 4) as usize;
  for (let offset: usize = 0; offset < bytes; offset += 16) {
    v128.store(at + offset, v128.load(from + offset));
  }
  return at + bytes;
}

// @ts-ignore: decorator
@inline
function putArrayHeader(at: usize, count: u32): usize {
  if (count < 16) {
    store<u8>(at, 0x90 | count);
    return at + 1;
  }
  if (count < 0x10000) {
    store<u8>(at, 0xdc);
    store<u16>(at, bswap<u16>(count as u16), 1);
    return at + 3;
  }
  store<u8>(at, 0xdd);
  store<u32>(at, bswap<u32>(count), 1);
  return at + 5;
}

/** A whole store without images, up to the rank. */
export function putStored(
  at: usize,
  template: usize,
  eventId: u64,
  hasParent: u32,
  parent: u64,
  hashes: usize,
  tokensHashes: usize,
  count: u32,
  dpRank: u32,
): usize {
  at = putPart(put(putPart(at, template), eventId), template + MIDDLE);
  if (hasParent != 0) {
    at = put(at, parent);
  } else {
    store<u8>(at, 0xc0);
    at += 1;
  }
  at = putArrayHeader(putPart(at, template + SECOND_MIDDLE), count);
  at = putBlocks(at, hashes, tokensHashes, count);
  return put(putPart(at, template + TAIL), dpRank as u64);
}

/** A whole remove, up to the rank. */
export function putRemoved(
  at: usize,
  template: usize,
  eventId: u64,
  hashes: usize,
  count: u32,
  dpRank: u32,
): usize {
  at = putPart(put(putPart(at, template), eventId), template + MIDDLE);
  at = putHashes(putArrayHeader(at, count), hashes, count);
  return put(putPart(at, template + TAIL), dpRank as u64);
}
