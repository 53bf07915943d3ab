/** No engine gets through so many numbers between two messages: a jump that wide says nothing but "some". */
const MAX_GAP = 2n ** 32n;

/** How many numbers there are from `from` up to, but without, `end`; 0 where there is none. */
export function countBetween(from: bigint, end: bigint): number {
  if (end <= from) return 0;
  return end - from > MAX_GAP ? 1 : Number(end - from);
}
