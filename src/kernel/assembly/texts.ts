// Texts of up to 31 bytes that are known beforehand, each under a code from 1 on in the order in which
// they were added. Found by length, then by comparing 8 bytes at a time.
//
// entry  [0..32) text, zeros behind it   [32] next entry of the same length   [36] code

const ENTRY_BYTES: usize = 40;
const MAX_TEXTS: u32 = 64;
const LONGEST: usize = 31;

const ENTRIES: usize = memory.data((MAX_TEXTS as i32) * 40, 8);
/** First entry of each length. */
const FIRST: usize = memory.data(32 * 4, 8);

let count: u32 = 0;

/** Adds a text and returns its code; 0 where it is too long, or there are too many. */
export function addText(at: usize, length: usize): u32 {
  if (length > LONGEST || count == MAX_TEXTS) return 0;
  const entry = ENTRIES + (count as usize) * ENTRY_BYTES;
  memory.copy(entry, at, length);
  store<u32>(entry, ++count, 36);
  let link = FIRST + (length << 2);
  while (load<u32>(link) != 0) link = (load<u32>(link) as usize) + 32;
  store<u32>(link, entry as u32);
  return count;
}

/** Code of the text at `at`, 0 where it is not known; up to 7 bytes behind it are loaded. */
// @ts-ignore: decorator
@inline
export function textCode(at: usize, length: usize): u32 {
  let entry = load<u32>(FIRST + (length << 2)) as usize;
  while (entry != 0 && !isSame(entry, at, length)) entry = load<u32>(entry, 32) as usize;
  return entry == 0 ? 0 : load<u32>(entry, 36);
}

// @ts-ignore: decorator
@inline
function isSame(entry: usize, at: usize, length: usize): bool {
  while (length > 8) {
    if (load<u64>(entry) != load<u64>(at)) return false;
    entry += 8;
    at += 8;
    length -= 8;
  }
  // What the last load has beyond the text is shifted out.
  return (load<u64>(entry) ^ load<u64>(at)) << (((8 - length) as u64) << 3) == 0;
}
