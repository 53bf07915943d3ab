// Reads MessagePack integers and lists of them into packed lists.
//
// A reader stops at the first byte it cannot take. `next` is then the failure: NOT_AN_INTEGER where
// a value has the wrong type or range, TRUNCATED where the input ends inside a value.

const NOT_AN_INTEGER: usize = 1;
export const TRUNCATED: usize = 2;

/** Payload of the integer read last; negative ones as two's complement. */
export let value: u64 = 0;
export let negative: bool = false;

/** Reads the integer at `at` (`at` < `end`); returns the address after it or a failure. */
// @ts-ignore: decorator
@inline
export function readInteger(at: usize, end: usize): usize {
  const marker = load<u8>(at) as u32;
  negative = false;
  if (marker < 0x80) {
    value = marker as u64;
    return at + 1;
  }
  if (marker >= 0xe0) {
    value = (((marker as i32) << 24) >> 24) as i64 as u64;
    negative = true;
    return at + 1;
  }
  if (marker < 0xcc || marker > 0xd3) return NOT_AN_INTEGER;
  const width = (1 as usize) << ((marker & 3) as usize);
  const next = at + 1 + width;
  if (next > end) return TRUNCATED;
  switch (marker) {
    case 0xcc:
      value = load<u8>(at, 1) as u64;
      break;
    case 0xcd:
      value = bswap<u16>(load<u16>(at, 1)) as u64;
      break;
    case 0xce:
      value = bswap<u32>(load<u32>(at, 1)) as u64;
      break;
    case 0xcf:
      value = bswap<u64>(load<u64>(at, 1));
      break;
    case 0xd0:
      value = load<i8>(at, 1) as i64 as u64;
      negative = (value as i64) < 0;
      break;
    case 0xd1:
      value = (bswap<u16>(load<u16>(at, 1)) as i16) as i64 as u64;
      negative = (value as i64) < 0;
      break;
    case 0xd2:
      value = (bswap<u32>(load<u32>(at, 1)) as i32) as i64 as u64;
      negative = (value as i64) < 0;
      break;
    default:
      value = bswap<u64>(load<u64>(at, 1));
      negative = (value as i64) < 0;
  }
  return next;
}

/** Reads a `bin` of 8 bytes or more; its last 8, big-endian, are the value. */
function readByteHash(at: usize, end: usize): usize {
  const marker = load<u8>(at) as u32;
  if (marker < 0xc4 || marker > 0xc6) return NOT_AN_INTEGER;
  const width = (1 as usize) << ((marker - 0xc4) as usize);
  if (at + 1 + width > end) return TRUNCATED;
  let length = load<u8>(at, 1) as usize;
  if (width == 2) length = bswap<u16>(load<u16>(at, 1)) as usize;
  else if (width == 4) length = bswap<u32>(load<u32>(at, 1)) as usize;
  // Compared as what is left, since an address plus a declared length could wrap.
  if (length > end - (at + 1 + width)) return TRUNCATED;
  if (length < 8) return NOT_AN_INTEGER;
  const next = at + 1 + width + length;
  value = bswap<u64>(load<u64>(next - 8));
  return next;
}

/** Reads a hash to `value`: i64 or u64, equal bits; with `takesBytes` also a digest as `bin`. */
// @ts-ignore: decorator
@inline
export function readHash(at: usize, end: usize, takesBytes: u32): usize {
  if (at >= end) return TRUNCATED;
  if (load<u8>(at) == 0xcf && at + 9 <= end) {
    value = bswap<u64>(load<u64>(at, 1));
    return at + 9;
  }
  const next = readInteger(at, end);
  return next == NOT_AN_INTEGER && takesBytes != 0 ? readByteHash(at, end) : next;
}

/** Reads `count` hashes to the u64 list `out`. */
export function readHashes(
  at: usize,
  end: usize,
  count: u32,
  out: usize,
  takesBytes: u32,
): usize {
  for (let i: u32 = 0; i < count; i++) {
    const next = readHash(at, end, takesBytes);
    if (next <= TRUNCATED) return next;
    store<u64>(out, value);
    out += 8;
    at = next;
  }
  return at;
}

// @ts-ignore: decorator
@inline
function readToken(at: usize, end: usize, out: usize): usize {
  if (at >= end) return TRUNCATED;
  // One to four bytes, told apart without a branch: which of them comes next cannot be foreseen, and a
  // wrong guess costs more than all the rest. Up to 7 bytes behind the token are loaded.
  const kind = (load<u8>(at) as u32) - 0xcc;
  if (kind <= 2) {
    const width = (1 as usize) << (kind as usize);
    if (at + 1 + width > end) return TRUNCATED;
    const shifted = bswap<u64>(load<u64>(at, 1)) >> ((64 - (width << 3)) as u64);
    store<u32>(out, shifted as u32);
    return at + 1 + width;
  }
  const next = readInteger(at, end);
  if (next <= TRUNCATED) return next;
  if (negative || value > 0xffffffff) return NOT_AN_INTEGER;
  store<u32>(out, value as u32);
  return next;
}

/** Reads `count` token ids (u32) to `out`. */
export function readTokens(at: usize, end: usize, count: u32, out: usize): usize {
  for (let i: u32 = 0; i < count; i++) {
    const next = readToken(at, end, out);
    if (next <= TRUNCATED) return next;
    out += 4;
    at = next;
  }
  return at;
}

/** Reads `count` pairs [a, b]: every first member to `out`, then the second member of the last. */
export function readBigrams(at: usize, end: usize, count: u32, out: usize): usize {
  for (let i: u32 = 0; i < count; i++) {
    if (at >= end) return TRUNCATED;
    const marker = load<u8>(at);
    if (marker == 0x92) {
      at += 1;
    } else if (marker == 0xdc && at + 3 <= end && bswap<u16>(load<u16>(at, 1)) == 2) {
      at += 3;
    } else if (marker == 0xdd && at + 5 <= end && bswap<u32>(load<u32>(at, 1)) == 2) {
      at += 5;
    } else {
      return NOT_AN_INTEGER;
    }
    let next = readToken(at, end, out);
    if (next <= TRUNCATED) return next;
    out += 4;
    next = readToken(next, end, out);
    if (next <= TRUNCATED) return next;
    at = next;
  }
  return at;
}
