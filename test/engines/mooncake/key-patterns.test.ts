import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyPatternOf, parsedHashOf } from '../../../src/engines/mooncake/key-patterns.ts';
import { ConfigError } from '../../../src/errors.ts';

const DIGEST = '00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0';
const PRESETS = ['vllm', 'vllm-ascend', 'sglang', 'lmcache'];

function hashOf(setting: string, key: string): bigint | null {
  const parsed = keyPatternOf(setting).parse(key);
  return parsed === null ? null : parsedHashOf(parsed);
}

describe('keyPatternOf takes a pattern', () => {
  test('whose groups model and rank are told, and the others kept', () => {
    const pattern = keyPatternOf(
      '(?<model>[^/]+)/(?<rank>\\d+)/(?<hash>[0-9a-f]{16})(?:@(?<salt>.+))?',
    );
    expect(pattern.name).toBe('custom');
    expect(pattern.parse('Qwen3/2/00000000000000ff')).toEqual({
      blockHash: '00000000000000ff',
      encoding: 'hex',
      model: 'Qwen3',
      rank: 2,
      groups: { model: 'Qwen3', rank: '2', hash: '00000000000000ff' },
    });
    expect(pattern.parse('Qwen3/2/00000000000000ff@a')?.groups.salt).toBe('a');
  });

  test('that has to match the whole key', () => {
    const pattern = keyPatternOf('(?<hash>[0-9a-f]+)');
    expect(pattern.parse('ff')?.blockHash).toBe('ff');
    for (const key of ['ff ', ' ff', 'model@ff', '']) expect(pattern.parse(key)).toBeNull();
  });

  test('whose group hash_decimal is a decimal number', () => {
    expect(keyPatternOf('k(?<hash_decimal>-?\\d+)').parse('k-1')).toEqual({
      blockHash: '-1',
      encoding: 'decimal',
      groups: { hash_decimal: '-1' },
    });
  });

  test('and leaves a rank that is no small number to the groups', () => {
    const pattern = keyPatternOf('(?<rank>.*)@(?<hash>.+)');
    for (const rank of ['', 'a', '-1', '1234567890']) {
      const parsed = pattern.parse(`${rank}@ff`);
      expect(parsed).not.toBeNull();
      expect(parsed).not.toHaveProperty('rank');
      expect(parsed?.groups.rank).toBe(rank);
    }
  });

  test('and gives nothing for a hash that is no number of 64 bits, or took no part', () => {
    expect(keyPatternOf('(?<hash>.*)').parse('not hex')).toBeNull();
    expect(keyPatternOf('(?<hash>.*)').parse('')).toBeNull();
    expect(keyPatternOf('(?<hash_decimal>.*)').parse('18446744073709551616')).toBeNull();
    expect(keyPatternOf('a|(?<hash>.*)').parse('a')).toBeNull();
  });
});

test.each([
  ['', 'no group hash'],
  ['vLLM', 'no group hash'],
  ['(?<block>.*)', 'no group hash'],
  ['(?<hash>.*)(?<hash_decimal>.*)', 'two hashes'],
  ['(?<hash>.*)(?<hash>.*)', 'two groups hash'],
  ['(?<hash>.*', '( without its )'],
  ['(?<hash>.*))', ') without its ('],
  ['(?<ha-sh>.*)', 'name'],
  ['(?<hash>.*)(?=a)', '(?'],
  ['(?<hash>.*)\\1', '\\1'],
  ['(?<hash>\\bff)', '\\b'],
  ['(?<hash>[0-9', 'ends inside'],
  ['(?<hash>[9-0])', 'range'],
  ['(?<hash>*)', 'repeats nothing'],
  ['(?<hash>a**)', 'repeats a repetition'],
  ['(?<hash>a{2000})', 'count'],
  ['(?<hash>(?:a{256}){5})', 'steps'],
  ['(?<hash>(?:a{256}){256})', 'steps'],
  ['(?<hash>(?:(?:(?:){256}){256}){256})', 'steps'],
  [`(?<hash>.*)${'x'.repeat(512)}`, '523 characters'],
])('keyPatternOf refuses %j and says %j', (setting, reason) => {
  expect(() => keyPatternOf(setting)).toThrow(ConfigError);
  expect(() => keyPatternOf(setting)).toThrow(reason);
  expect(() => keyPatternOf(setting)).toThrow('--mooncake-key-pattern');
});

describe('parsedHashOf reads', () => {
  test.each([
    ['the last 8 bytes of a digest', 'hex', DIGEST, 0x8796a5b4c3d2e1f0n],
    ['the whole of a short hex number', 'hex', 'ff', 255n],
    ['capitals', 'hex', 'FF', 255n],
    ['a hex number below 0 as two’s complement', 'hex', '-8000000000000000', 2n ** 63n],
    ['a decimal number', 'decimal', '18446744073709551615', 2n ** 64n - 1n],
    ['a decimal number below 0 as two’s complement', 'decimal', '-9223372036854775808', 2n ** 63n],
    ['no decimal number above 64 bits', 'decimal', '18446744073709551616', null],
    ['no decimal number below 64 bits', 'decimal', '-9223372036854775809', null],
    ['no hex number below 64 bits', 'hex', '-8000000000000001', null],
    ['no digest with a sign', 'hex', `-${'0'.repeat(31)}1`, null],
    ['no other text', 'hex', '0x10', null],
    ['no hex digits in a decimal number', 'decimal', 'ff', null],
  ] as const)('%s', (_, encoding, blockHash, hash) => {
    expect(parsedHashOf({ blockHash, encoding })).toBe(hash);
  });

  test('every u64 and i64, in both encodings', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), (value) => {
        const hash = BigInt.asUintN(64, value);
        expect(parsedHashOf({ blockHash: value.toString(16), encoding: 'hex' })).toBe(hash);
        expect(parsedHashOf({ blockHash: value.toString(), encoding: 'decimal' })).toBe(hash);
      }),
    );
  });
});

describe('the presets', () => {
  test('tell a cache prefix and a store namespace from the model', () => {
    const key = `a@b@m@store_pp:1@store_format:x@tp_rank:3@pcp0@dcp0@pp_rank:0@group:1@${DIGEST}`;
    expect(keyPatternOf('vllm').parse(key)).toMatchObject({
      model: 'm',
      rank: 3,
      groups: { prefix: 'a@b', namespace: '@store_pp:1@store_format:x', group: '1' },
    });
  });

  test.each([
    ['vllm', `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${DIGEST.slice(0, 14)}`],
    ['vllm', `m@tp_rank:0@pcp0@dcp0@pp_rank:0@${DIGEST}`],
    [
      'vllm-ascend',
      `m@pcp0@dcp0@head_or_tp_rank:0@group:0@cache_role:state@cache_family:c4@${DIGEST}`,
    ],
    ['vllm-ascend', `m@pcp0@dcp0@head_or_tp_rank:0@partial@${DIGEST}`],
    ['sglang', `m_${DIGEST}_0_temporal`],
    ['sglang', `m_${DIGEST}__draft_k`],
    ['sglang', `m_${DIGEST.slice(1)}_0_k`],
    ['sglang', 'sglang_mooncake_store_warmup_key'],
    ['lmcache', 'm@2@0@123456789abcdef01@bfloat16'],
    ['lmcache', `m@02000200@0@${DIGEST}@salt@more`],
  ])('%s does not take %s for a block', (preset, key) => {
    expect(keyPatternOf(preset).parse(key)).toBeNull();
  });

  test('take no key of each other', () => {
    const keys: Readonly<Record<string, string>> = {
      vllm: `m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${DIGEST}`,
      'vllm-ascend': `m@pcp0@dcp0@head_or_tp_rank:0@pp_rank:0@group:0@cache_role:kv@cache_family:default@${DIGEST}`,
      sglang: `m_${DIGEST}_0_k`,
      lmcache: `m@02000200@0@${DIGEST}`,
    };
    for (const preset of PRESETS) {
      const takers = PRESETS.filter((other) => hashOf(other, keys[preset] as string) !== null);
      expect(takers).toEqual([preset]);
    }
  });
});

describe('a hostile key', () => {
  const LONGEST = 1024;
  const hostile = [
    '@'.repeat(LONGEST),
    'a'.repeat(LONGEST),
    '@a'.repeat(LONGEST / 2),
    '@store_a:b'.repeat(102),
    `${'a@0@0@1@b'.padEnd(LONGEST - 1, '@c%d')}@`,
    '_0123456789abcdef'.repeat(60),
    `${'a'.repeat(40)}_`.repeat(24),
    '0'.repeat(LONGEST),
    'm@tp_rank:'.repeat(102),
  ];

  test.each([
    ...PRESETS.map((preset): [string, string] => [preset, preset]),
    ['nested stars', '(?:(?:(?:.*)*)*)*x(?<hash>a)'],
    ['ways that overlap', '(?<hash>(?:a|a|aa|a*)*b)'],
    ['250 stars', `${'.*'.repeat(250)}(?<hash>c)`],
  ])('costs %s a bounded time', (_, setting) => {
    const pattern = keyPatternOf(setting);
    const startMs = performance.now();
    for (const key of hostile) expect(pattern.parse(key)).toBeNull();
    // One backtracking match of the custom patterns would outlast the test run.
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });

  test.each(['vllm', '(?<model>.*)@(?<hash>[0-9a-f]+)'])(
    'that is longer than 1,024 characters matches nothing in %s',
    (setting) => {
      const end = `@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@${DIGEST}`;
      const longest = 'm'.repeat(LONGEST - end.length) + end;
      expect(hashOf(setting, longest)).toBe(0x8796a5b4c3d2e1f0n);
      expect(hashOf(setting, `m${longest}`)).toBeNull();
    },
  );
});
