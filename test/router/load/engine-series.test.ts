import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LoadRanks, readLoad } from '../../../src/router/load/engine-series.ts';
import { sglangPage, vllmPage } from '../../support/engine-page.ts';

const vllm: LoadRanks = { engine: 'vllm', dpRank: 0, dpSize: 1, blockSize: 16 };
const sglang: LoadRanks = { ...vllm, engine: 'sglang' };

function known(...usedBlocks: number[]): unknown {
  return { usedBlocks, fault: null };
}

test('O9: a quarter of 400 blocks is 100 used ones', () => {
  expect(readLoad(vllmPage({ 0: 0.25 }, '400'), vllm)).toEqual(known(100));
});

test.each([
  ['an empty cache is 0, not unknown', 0, '400', 0],
  ['a full one', 1, '400', 400],
  ['usage in scientific notation', '8.34e-05', '24000', 2],
  // vLLM divides by all blocks but one.
  ['37 of 399 usable blocks', String(37 / 399), '400', 37],
])('vLLM: %s', (_, usage, blocks, used) => {
  expect(readLoad(vllmPage({ 0: usage }, blocks), vllm)).toEqual(known(used));
});

test('vLLM 0.9.0 names usage by an older name; where both are there, the newer one goes', () => {
  const page = vllmPage({ 0: 0.25 }, '400');
  const older = page.replaceAll('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc');
  expect(readLoad(older, vllm)).toEqual(known(100));
  expect(readLoad(older.replaceAll(' 0.25', ' 0.75') + page, vllm)).toEqual(known(100));
});

test('vLLM: the blocks of a page are shared by its engines, each under its rank', () => {
  const page = vllmPage({ 4: 0.25, 5: 0.5 }, '800');
  expect(readLoad(page, { ...vllm, dpRank: 4, dpSize: 2 })).toEqual(known(100, 200));
  expect(readLoad(page, { ...vllm, dpRank: 5 })).toEqual(known(200));
});

test('vLLM: a page that shows fewer engines than there are ranks does not tell their blocks', () => {
  expect(readLoad(vllmPage({ 1: 0.5 }, '800'), { ...vllm, dpSize: 2 })).toEqual({
    usedBlocks: [null, null],
    fault: 'missing_series',
  });
});

test('the only engine of a page is the only rank, whatever number it gives itself', () => {
  const page = vllmPage({ 0: 0.25 }, '400');
  expect(readLoad(page, { ...vllm, dpRank: 7 })).toEqual(known(100));
  expect(readLoad(page, { ...vllm, dpRank: 7, dpSize: 2 })).toEqual({
    usedBlocks: [null, null],
    fault: 'missing_series',
  });
  expect(readLoad(vllmPage({ 0: 0.25, 1: 0.5 }, '800'), { ...vllm, dpRank: 7 })).toEqual({
    usedBlocks: [null],
    fault: 'missing_series',
  });
});

test('SGLang: tokens are rounded down as its scheduler does, and up to blocks as Dynamo does', () => {
  const page = sglangPage([{ rank: null, usage: 0.29, tokens: 100_000 }]);
  expect(readLoad(page, sglang)).toEqual(known(Math.ceil(28_999 / 16)));
});

test('SGLang: each rank under its number; the fullest of several samples counts', () => {
  const rows = [
    { rank: 0, usage: 0.5, tokens: 1600 },
    { rank: 1, usage: 0.1, tokens: 1600, tp: 4 },
    { rank: 1, usage: 0.2, tokens: 1600, tp: 5 },
  ];
  expect(readLoad(sglangPage(rows), { ...sglang, dpSize: 2 })).toEqual(known(50, 20));
});

test.each([
  ['no series at all', vllm, '', 'missing_series'],
  ['another program', vllm, 'up 1\nvllm:kv_cache_usage_percent 0.5\n', 'missing_series'],
  ['the other engine', vllm, sglangPage([{ rank: 0, usage: 0.5, tokens: 100 }]), 'missing_series'],
  ['no total', vllm, 'vllm:kv_cache_usage_perc{engine="0"} 0.5', 'missing_series'],
  ['a total not measured yet', vllm, vllmPage({ 0: 0 }, 'None'), 'missing_series'],
  ['a sample cut off', vllm, vllmPage({ 0: '' }, '400'), 'missing_series'],
  ['a value that is no number', vllm, vllmPage({ 0: 'x' }, '400'), 'missing_series'],
  ['NaN', vllm, vllmPage({ 0: 'NaN' }, '400'), 'bad_value'],
  ['an infinity', vllm, vllmPage({ 0: '+Inf' }, '400'), 'bad_value'],
  ['a negative usage', vllm, vllmPage({ 0: -0.1 }, '400'), 'bad_value'],
  ['more than all', vllm, vllmPage({ 0: 25 }, '400'), 'bad_value'],
  ['no blocks', vllm, vllmPage({ 0: 0.5 }, '0'), 'bad_value'],
  ['blocks that are no count', vllm, vllmPage({ 0: 0.5 }, '4e2'), 'bad_value'],
  ['blocks beyond counting', vllm, vllmPage({ 0: 0.5 }, '9'.repeat(30)), 'bad_value'],
  ['NaN tokens', sglang, sglangPage([{ rank: 0, usage: 0.5, tokens: 'NaN' }]), 'bad_value'],
  ['a total of 1e300', sglang, sglangPage([{ rank: 0, usage: 1, tokens: '1e300' }]), 'bad_value'],
  ['a rank that is none', vllm, vllmPage({ '-1': 0.5 }, '400'), 'missing_series'],
  ['too many lines', vllm, `\n`.repeat(100_001) + vllmPage({ 0: 0.5 }, '400'), 'too_many_lines'],
  [
    'an endless line',
    vllm,
    vllmPage({ 0: 0.5 }, '400').replace('meta', 'm'.repeat(20_000)),
    'missing_series',
  ],
] as const)('the load is unknown with %s', (_, ranks, page, fault) => {
  expect(readLoad(page, ranks)).toEqual({ usedBlocks: [null], fault });
});

test('one bad rank leaves the others known', () => {
  const page = vllmPage({ 0: 0.25, 1: 'NaN' }, '800');
  expect(readLoad(page, { ...vllm, dpSize: 2 })).toEqual({
    usedBlocks: [100, null],
    fault: 'bad_value',
  });
});

test('labels may hold what labels may hold, and lines may end with a time', () => {
  const page = vllmPage({ 0: 0.25 }, '400')
    .replace('meta-llama', 'a \\"}{,= engine=\\"9\\" \\\\')
    .replaceAll(/ (0.25|1.0)$/gm, '  $1 1796032020908');
  expect(readLoad(page, vllm)).toEqual(known(100));
});

test('whatever a page says, a rank is unknown or a count', () => {
  const line = fc.oneof(
    fc.constantFrom(...vllmPage({ 0: 0.25, 1: 1 }, '800').split('\n')),
    fc.string(),
    fc.string().map((text) => `vllm:kv_cache_usage_perc{engine="0"} ${text}`),
    fc.double().map((usage) => `vllm:kv_cache_usage_perc{engine="1"} ${usage}`),
    fc.string().map((text) => `vllm:cache_config_info{engine="1",num_gpu_blocks="${text}"} 1`),
    fc.string().map((text) => `vllm:cache_config_info{${text}} 1`),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const { usedBlocks } = readLoad(lines.join('\n'), { ...vllm, dpSize: 2 });
      expect(usedBlocks).toHaveLength(2);
      for (const used of usedBlocks)
        expect(used === null || (Number.isSafeInteger(used) && used >= 0)).toBe(true);
    }),
  );
});
