// Spreads u64 keys over the slots of a table. A secret of the process goes in first, so that nobody can
// choose keys that meet in one slot.

let secret: u64 = 0;

export function setSecret(value: u64): void {
  secret = value;
}

// @ts-ignore: decorator
@inline
export function mix(key: u64): u64 {
  let h = key ^ secret;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 29;
  h *= 0x9e3779b97f4a7c15;
  return h ^ (h >> 32);
}
