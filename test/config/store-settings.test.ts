/** Settings of stores: what they need, what needs them, and where the object stream goes. */
import { expect, test } from 'vitest';
import { load, loadBare, refusal } from './loading.ts';

const STORE = ['--mooncake-endpoint', 'tcp://127.0.0.1:5560'];

test('a store beside an engine, with its defaults', () => {
  expect(load(STORE)).toMatchObject({
    engine: 'vllm',
    mooncakeEndpoint: 'tcp://127.0.0.1:5560',
    mooncakeMaster: null,
    mooncakeTier: 'external',
    mooncakeReconcileSeconds: 300,
    warnings: [],
  });
});

test('--engine none follows stores alone, and has no block size', () => {
  expect(loadBare(['--engine', 'none', ...STORE])).toMatchObject({ engine: 'none', blockSize: 0 });
  expect(refusal(() => loadBare(['--engine', 'none']))).toMatch(
    /^--engine 'none' leaves nothing to follow; allowed: --mooncake-endpoint, --lmcache-stream, --lmcache-bridge or /,
  );
  const pattern = ['--mooncake-key-pattern', 'vllm'];
  expect(refusal(() => loadBare(['--engine', 'none', ...STORE, ...pattern]))).toContain(
    'places blocks that an engine has shown',
  );
  const metrics = ['--engine-metrics', 'http://h:1/metrics'];
  expect(refusal(() => loadBare(['--engine', 'none', ...STORE, ...metrics]))).toContain(
    '--engine none',
  );
});

test.each([
  ['http://127.0.0.1:9003', 'http://127.0.0.1:9003'],
  ['https://master:9003/', 'https://master:9003'],
  ['master:9003', 'http://master:9003'],
  ['[::1]:9003', 'http://[::1]:9003'],
])('the master %s is %s', (given, url) => {
  expect(load([...STORE, '--mooncake-master', given]).mooncakeMaster).toBe(url);
});

test('a wildcard is connected to as this host, and said', () => {
  const config = load(['--mooncake-endpoint', 'tcp://*:5560']);
  expect(config.mooncakeEndpoint).toBe('tcp://127.0.0.1:5560');
  expect(config.warnings).toEqual([
    '--mooncake-endpoint tcp://*:5560 cannot be connected to: tcp://127.0.0.1:5560 is used',
  ]);
  expect(refusal(() => load(['--mooncake-endpoint', 'tcp://h:0']))).toContain('has no port');
});

test.each([
  ['--mooncake-master', 'http://h:1'],
  ['--mooncake-key-pattern', 'vllm'],
  ['--mooncake-tier', 'disk'],
  ['--mooncake-reconcile-seconds', '60'],
  ['--mooncake-hold-bytes', '65536'],
])('%s without a store is refused', (flag, value) => {
  expect(refusal(() => load([flag, value]))).toMatch(
    new RegExp(`^${flag} '.*' has no store to go with; allowed: --mooncake-endpoint beside it`),
  );
});

test('the object stream needs room behind the ranks and the load', () => {
  const at = (port: number): string[] => [...STORE, '--plane-endpoint', `tcp://127.0.0.1:${port}`];
  expect(load(at(65_533)).warnings).toEqual([]);
  expect(refusal(() => load(at(65_534)))).toContain(
    "makes the object stream's address tcp://127.0.0.1:65536",
  );
  const nats = [...at(65_534), '--event-plane', 'nats'];
  expect(load(nats).mooncakeEndpoint).toBe(STORE[1]);
});
