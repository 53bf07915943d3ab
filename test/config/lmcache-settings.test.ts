/** LMCache's bridge, as a start takes or refuses it. */
import { expect, test } from 'vitest';
import { load, loadBare, refusal } from './loading.ts';

const BRIDGE = ['--lmcache-bridge', 'tcp://127.0.0.1:5571'];

test('the bridge and its replay are connected to, a wildcard as loopback', () => {
  const config = load(['--lmcache-bridge', 'tcp://*:5571', '--lmcache-replay', 'tcp://h:5572']);
  expect(config).toMatchObject({
    lmcacheBridge: 'tcp://127.0.0.1:5571',
    lmcacheReplay: 'tcp://h:5572',
  });
  expect(config.warnings).toHaveLength(1);
  expect(load(BRIDGE).warnings).toEqual([]);
});

test('the bridge alone is enough for --engine none', () => {
  expect(loadBare(['--engine', 'none', ...BRIDGE])).toMatchObject({ engine: 'none', blockSize: 0 });
});

test('a port of 0 cannot be connected to', () => {
  expect(refusal(() => load(['--lmcache-bridge', 'tcp://h:0']))).toMatch(/^--lmcache-bridge /);
  const line = refusal(() => load([...BRIDGE, '--lmcache-replay', 'tcp://h:0']));
  expect(line).toMatch(/^--lmcache-replay /);
});

test.each([
  ['--lmcache-replay', 'tcp://h:5572'],
  ['--lmcache-sample-percent', '50'],
  ['--lmcache-label-values', '5'],
  ['--lmcache-max-tracked', '5'],
  ['--lmcache-max-pending', '5'],
  ['--lmcache-pair-timeout-s', '5'],
  ['--lmcache-request-timeout-s', '5'],
])('%s means nothing without a bridge', (flag, value) => {
  const line = refusal(() => load([flag, value]));
  expect(line.startsWith(`${flag} `)).toBe(true);
  expect(line).toContain('--lmcache-bridge');
  expect(load([...BRIDGE, flag, value]).warnings).toEqual([]);
});
