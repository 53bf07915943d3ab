// XXH3, 64 bits, with a seed and the default secret, over every input length.
// Source: the XXH3 part of the xxHash format description (xxh3 64-bit, v0.8).

const PRIME32_1: u64 = 0x9e3779b1;
const PRIME32_2: u64 = 0x85ebca77;
const PRIME32_3: u64 = 0xc2b2ae3d;
const PRIME64_1: u64 = 0x9e3779b185ebca87;
const PRIME64_2: u64 = 0xc2b2ae3d27d4eb4f;
const PRIME64_3: u64 = 0x165667b19e3779f9;
const PRIME64_4: u64 = 0x85ebca77c2b2ae63;
const PRIME64_5: u64 = 0x27d4eb2f165667c5;
const PRIME_MX1: u64 = 0x165667919e3779f9;
const PRIME_MX2: u64 = 0x9fb21c651e98df25;

const STRIPE_BYTES: usize = 64;
const BLOCK_BYTES: usize = 1024;
const STRIPES_A_BLOCK: usize = 16;

// prettier-ignore
const SECRET: usize = memory.data<u8>([
  0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
  0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
  0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
  0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
  0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
  0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
  0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
  0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
  0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
  0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
  0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
  0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
], 16);
const SECRET_BYTES: usize = 192;

/** The secret of the last seed that hashed a long input; seeds change rarely. */
const SEEDED_SECRET: usize = memory.data(192, 16);
let seededFor: u64 = 0;
let seeded: bool = false;

// @ts-ignore: decorator
@inline
function rotl(x: u64, r: u64): u64 {
  return (x << r) | (x >> (64 - r));
}

// @ts-ignore: decorator
@inline
function swap32(x: u32): u32 {
  return (bswap<u32>(x));
}

/** High half xor low half of the 128-bit product. */
// @ts-ignore: decorator
@inline
function mulFold(a: u64, b: u64): u64 {
  const aLow = a & 0xffffffff;
  const aHigh = a >> 32;
  const bLow = b & 0xffffffff;
  const bHigh = b >> 32;
  const lowLow = aLow * bLow;
  const highLow = aHigh * bLow;
  const lowHigh = aLow * bHigh;
  const cross = (lowLow >> 32) + (highLow & 0xffffffff) + lowHigh;
  const upper = (highLow >> 32) + (cross >> 32) + aHigh * bHigh;
  return upper ^ (a * b);
}

// @ts-ignore: decorator
@inline
function avalanche(h: u64): u64 {
  h ^= h >> 37;
  h *= PRIME_MX1;
  return h ^ (h >> 32);
}

// @ts-ignore: decorator
@inline
function avalanche64(h: u64): u64 {
  h ^= h >> 33;
  h *= PRIME64_2;
  h ^= h >> 29;
  h *= PRIME64_3;
  return h ^ (h >> 32);
}

// @ts-ignore: decorator
@inline
function mix16(p: usize, secret: usize, seed: u64): u64 {
  return mulFold(
    load<u64>(p) ^ (load<u64>(secret) + seed),
    load<u64>(p, 8) ^ (load<u64>(secret, 8) - seed),
  );
}

function upTo16(p: usize, len: usize, seed: u64): u64 {
  if (len > 8) {
    const low = load<u64>(p) ^ ((load<u64>(SECRET, 24) ^ load<u64>(SECRET, 32)) + seed);
    const high = load<u64>(p + len - 8) ^ ((load<u64>(SECRET, 40) ^ load<u64>(SECRET, 48)) - seed);
    return avalanche((len as u64) + bswap<u64>(low) + high + mulFold(low, high));
  }
  if (len >= 4) {
    const mixedSeed = seed ^ ((swap32(seed as u32) as u64) << 32);
    const first = load<u32>(p) as u64;
    const last = load<u32>(p + len - 4) as u64;
    let h = (last + (first << 32)) ^ ((load<u64>(SECRET, 8) ^ load<u64>(SECRET, 16)) - mixedSeed);
    h ^= rotl(h, 49) ^ rotl(h, 24);
    h *= PRIME_MX2;
    h ^= (h >> 35) + (len as u64);
    h *= PRIME_MX2;
    return h ^ (h >> 28);
  }
  if (len > 0) {
    const a = load<u8>(p) as u32;
    const b = load<u8>(p + (len >> 1)) as u32;
    const c = load<u8>(p + len - 1) as u32;
    const combined = (a << 16) | (b << 24) | c | ((len as u32) << 8);
    const flip = ((load<u32>(SECRET) ^ load<u32>(SECRET, 4)) as u64) + seed;
    return avalanche64((combined as u64) ^ flip);
  }
  return avalanche64(seed ^ load<u64>(SECRET, 56) ^ load<u64>(SECRET, 64));
}

function upTo128(p: usize, len: usize, seed: u64): u64 {
  let acc = (len as u64) * PRIME64_1;
  const end = p + len;
  if (len > 32) {
    if (len > 64) {
      if (len > 96) {
        acc += mix16(p + 48, SECRET + 96, seed);
        acc += mix16(end - 64, SECRET + 112, seed);
      }
      acc += mix16(p + 32, SECRET + 64, seed);
      acc += mix16(end - 48, SECRET + 80, seed);
    }
    acc += mix16(p + 16, SECRET + 32, seed);
    acc += mix16(end - 32, SECRET + 48, seed);
  }
  acc += mix16(p, SECRET, seed);
  acc += mix16(end - 16, SECRET + 16, seed);
  return avalanche(acc);
}

function upTo240(p: usize, len: usize, seed: u64): u64 {
  let acc = (len as u64) * PRIME64_1;
  const rounds = len >> 4;
  for (let i: usize = 0; i < 8; i++) acc += mix16(p + (i << 4), SECRET + (i << 4), seed);
  acc = avalanche(acc);
  for (let i: usize = 8; i < rounds; i++) acc += mix16(p + (i << 4), SECRET + ((i - 8) << 4) + 3, seed);
  acc += mix16(p + len - 16, SECRET + 136 - 17, seed);
  return avalanche(acc);
}

function seedSecret(seed: u64): void {
  if (seeded && seededFor == seed) return;
  for (let i: usize = 0; i < SECRET_BYTES; i += 16) {
    store<u64>(SEEDED_SECRET + i, load<u64>(SECRET + i) + seed);
    store<u64>(SEEDED_SECRET + i, load<u64>(SECRET + i, 8) - seed, 8);
  }
  seededFor = seed;
  seeded = true;
}

/** One pair of accumulator lanes: each takes its own product and its neighbour's input. */
// @ts-ignore: decorator
@inline
function lanes(acc: v128, p: usize, secret: usize): v128 {
  const value = v128.load(p);
  const key = v128.xor(value, v128.load(secret));
  const low = v128.shuffle<u32>(key, key, 0, 2, 0, 2);
  const high = v128.shuffle<u32>(key, key, 1, 3, 1, 3);
  const product = i64x2.extmul_low_i32x4_u(low, high);
  const swapped = v128.shuffle<u64>(value, value, 1, 0);
  return i64x2.add(acc, i64x2.add(product, swapped));
}

// @ts-ignore: decorator
@inline
function scramble(acc: v128, secret: usize): v128 {
  const mixed = v128.xor(v128.xor(acc, i64x2.shr_u(acc, 47)), v128.load(secret));
  return i64x2.mul(mixed, i64x2.splat(PRIME32_1 as i64));
}

// @ts-ignore: decorator
@inline
function mergePair(acc: v128, secret: usize): u64 {
  return mulFold(
    (i64x2.extract_lane(acc, 0) as u64) ^ load<u64>(secret),
    (i64x2.extract_lane(acc, 1) as u64) ^ load<u64>(secret, 8),
  );
}

function over240(p: usize, len: usize, seed: u64): u64 {
  seedSecret(seed);
  let a = i64x2(PRIME32_3 as i64, PRIME64_1 as i64);
  let b = i64x2(PRIME64_2 as i64, PRIME64_3 as i64);
  let c = i64x2(PRIME64_4 as i64, PRIME32_2 as i64);
  let d = i64x2(PRIME64_5 as i64, PRIME32_1 as i64);
  const lastSecret = SEEDED_SECRET + SECRET_BYTES - STRIPE_BYTES;
  const blocks = (len - 1) / BLOCK_BYTES;
  const tailStripes = (len - 1 - blocks * BLOCK_BYTES) / STRIPE_BYTES;
  let at = p;
  for (let block: usize = 0; block <= blocks; block++) {
    const stripes = block < blocks ? STRIPES_A_BLOCK : tailStripes;
    for (let n: usize = 0; n < stripes; n++) {
      const secret = SEEDED_SECRET + (n << 3);
      a = lanes(a, at, secret);
      b = lanes(b, at + 16, secret + 16);
      c = lanes(c, at + 32, secret + 32);
      d = lanes(d, at + 48, secret + 48);
      at += STRIPE_BYTES;
    }
    if (block < blocks) {
      a = scramble(a, lastSecret);
      b = scramble(b, lastSecret + 16);
      c = scramble(c, lastSecret + 32);
      d = scramble(d, lastSecret + 48);
    }
  }
  at = p + len - STRIPE_BYTES;
  a = lanes(a, at, lastSecret - 7);
  b = lanes(b, at + 16, lastSecret + 9);
  c = lanes(c, at + 32, lastSecret + 25);
  d = lanes(d, at + 48, lastSecret + 41);
  let result = (len as u64) * PRIME64_1;
  result += mergePair(a, SEEDED_SECRET + 11);
  result += mergePair(b, SEEDED_SECRET + 27);
  result += mergePair(c, SEEDED_SECRET + 43);
  result += mergePair(d, SEEDED_SECRET + 59);
  return avalanche(result);
}

export function hash64(p: usize, len: usize, seed: u64): u64 {
  if (len <= 16) return upTo16(p, len, seed);
  if (len <= 128) return upTo128(p, len, seed);
  if (len <= 240) return upTo240(p, len, seed);
  return over240(p, len, seed);
}
