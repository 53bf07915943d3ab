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

const LISTEN = ['--lmcache-coordinator-listen', '127.0.0.1:9300'];

test('the coordinator endpoint alone is enough for --engine none, and is off unless it is given', () => {
  expect(load([]).lmcacheCoordinatorListen).toBeNull();
  const config = loadBare(['--engine', 'none', ...LISTEN]);
  expect(config.lmcacheCoordinatorListen).toEqual({ host: '127.0.0.1', port: 9300 });
  expect(Object.isFrozen(config.lmcacheCoordinatorListen)).toBe(true);
  expect(loadBare(['--engine', 'none', ...LISTEN, '--mooncake-max-objects', '5'])).toMatchObject({
    mooncakeMaxObjects: 5,
    lmcacheCoordinatorForward: null,
    lmcacheCoordinatorMaxBytes: 16_777_216,
    lmcacheMaxKeys: 8_000_000,
    lmcacheInstanceTimeoutS: 30,
  });
});

test.each([
  ['--lmcache-coordinator-forward', 'http://h:9300'],
  ['--lmcache-coordinator-max-bytes', '65536'],
  ['--lmcache-max-keys', '5'],
  ['--lmcache-instance-timeout-s', '5'],
])('%s means nothing without a coordinator endpoint', (flag, value) => {
  const line = refusal(() => load([flag, value]));
  expect(line.startsWith(`${flag} `)).toBe(true);
  expect(line).toContain('--lmcache-coordinator-listen');
  expect(load([...LISTEN, flag, value]).warnings).toEqual([]);
});

test.each(['127.0.0.1:9300', '0.0.0.0:9300'])('%s is not forwarded to itself', (listen) => {
  const argv = ['--lmcache-coordinator-listen', listen];
  const line = refusal(() => load([...argv, '--lmcache-coordinator-forward', '127.0.0.1:9300']));
  expect(line).toContain('is the address that is listened on');
});

test('the stream of objects needs an address on the plane', () => {
  const line = refusal(() => load([...LISTEN, '--plane-endpoint', 'tcp://127.0.0.1:65534']));
  expect(line).toMatch(/^--plane-endpoint .*object stream/);
});

test('--mooncake-max-objects means nothing where no objects are followed', () => {
  const line = refusal(() => load(['--mooncake-max-objects', '5']));
  expect(line).toContain('--lmcache-coordinator-listen');
});

test("the worker's own server needs a model to place, and an engine whose routers see it", () => {
  const own = [...LISTEN, '--lmcache-instance', 'mp-1'];
  const model = ['--lmcache-model', 'm', '--lmcache-l1-tier', 'off'];
  expect(load([...own, ...model])).toMatchObject({ lmcacheInstance: 'mp-1', lmcacheL1Tier: 'off' });
  expect(refusal(() => load(own))).toContain('allowed: --lmcache-model beside it');
  const none = ['--engine', 'none', ...own, '--lmcache-model', 'm'];
  expect(refusal(() => loadBare(none))).toContain('allowed: an --engine beside it');
  expect(refusal(() => load([...LISTEN, '--lmcache-model', 'm']))).toContain(
    'allowed: --lmcache-stream or --lmcache-instance beside it',
  );
  const strict = refusal(() => load([...own, '--lmcache-model', 'm', '--compat', 'strict']));
  expect(strict).toMatch(/^--lmcache-instance /);
});
