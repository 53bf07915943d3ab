// Memory blocks of power-of-two sizes, given back to a free list a size. WebAssembly memory never
// shrinks, so everything that grows and is dropped (tables, large messages) has to be used again; what a
// table has outgrown is cut up for smaller ones.

const MIN_BLOCK_SHIFT: u32 = 6;
const MAX_BLOCK_SHIFT: u32 = 31;
/** Larger free blocks are not cut up: they are kept for the next large table or message. */
const MAX_CUT_SHIFT: u32 = 19;

/** Heads of the free lists, one u32 a shift. */
const FREE_LISTS: usize = memory.data((MAX_BLOCK_SHIFT + 1) * 4, 8);

let top: usize = (__heap_base + 63) & ~63;

/** Smallest shift whose block holds `bytes`. */
export function blockShift(bytes: u32): u32 {
  if (bytes <= 1 << MIN_BLOCK_SHIFT) return MIN_BLOCK_SHIFT;
  return 32 - clz<u32>(bytes - 1);
}

/** A block of `1 << shift` bytes, contents undefined; 0 where no memory can be had. */
export function allocate(shift: u32): usize {
  const list = FREE_LISTS + shift * 4;
  const free = load<u32>(list);
  if (free != 0) {
    store<u32>(list, load<u32>(free));
    return free;
  }
  if (shift < MAX_CUT_SHIFT) {
    const cut = cutLarger(shift);
    if (cut != 0) return cut;
  }
  const end = (top as u64) + ((1 as u64) << shift);
  if (end > 0xffff_0000) return 0;
  const havePages = memory.size();
  const needPages = ((end + 0xffff) >> 16) as i32;
  if (needPages > havePages) {
    // Half as much again, so that a growing table does not ask for every page on its own.
    const wanted = max(needPages, min(havePages + (havePages >> 1), havePages + 1024));
    if (memory.grow(wanted - havePages) < 0 && memory.grow(needPages - havePages) < 0) return 0;
  }
  const block = top;
  top = end as usize;
  return block;
}

/** A block cut off the smallest larger free one, whose other parts are free then; 0 where there is none. */
function cutLarger(shift: u32): usize {
  let larger = shift + 1;
  while (larger <= MAX_CUT_SHIFT && load<u32>(FREE_LISTS + larger * 4) == 0) larger++;
  if (larger > MAX_CUT_SHIFT) return 0;
  const list = FREE_LISTS + larger * 4;
  const block = load<u32>(list) as usize;
  store<u32>(list, load<u32>(block));
  while (larger > shift) {
    larger--;
    release(block + ((1 as usize) << larger), larger);
  }
  return block;
}

/** Bytes of the address space that were never handed out. */
export function roomLeft(): u32 {
  return 0xffff_0000 - (top as u32);
}

/** Gives a block of `1 << shift` bytes back. */
export function release(block: usize, shift: u32): void {
  const list = FREE_LISTS + shift * 4;
  store<u32>(block, load<u32>(list));
  store<u32>(list, block as u32);
}
