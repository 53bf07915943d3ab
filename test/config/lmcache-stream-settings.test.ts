/** LMCache's event stream, as a start takes or refuses it. */
import { expect, test } from 'vitest';
import { load, loadBare, refusal } from './loading.ts';

const STREAM = ['--lmcache-stream', 'tcp://127.0.0.1:5555'];
const MODEL = ['--lmcache-model', 'm'];

test('the server is connected to, a wildcard as loopback', () => {
  const config = load(['--lmcache-stream', 'tcp://*:5555', ...MODEL]);
  expect(config).toMatchObject({ lmcacheStream: 'tcp://127.0.0.1:5555', lmcacheModel: 'm' });
  expect(config.warnings).toHaveLength(1);
  expect(load([...STREAM, ...MODEL]).warnings).toEqual([]);
  expect(refusal(() => load(['--lmcache-stream', 'tcp://h:0', ...MODEL]))).toContain('has no port');
});

test('further models are a list, frozen', () => {
  const { lmcacheStreamModels } = load([...STREAM, ...MODEL, '--lmcache-stream-models', 'a, b']);
  expect(lmcacheStreamModels).toEqual(['a', 'b']);
  expect(Object.isFrozen(lmcacheStreamModels)).toBe(true);
  const again = [...STREAM, ...MODEL, '--lmcache-stream-models', 'a,m'];
  expect(refusal(() => load(again))).toMatch(/^--lmcache-stream-models 'a,m' has the model of /);
});

test('it needs the model whose chunks are placed, or any where nothing is placed', () => {
  expect(refusal(() => load(STREAM))).toMatch(/lacks a model .*--lmcache-model beside it/);
  const others = ['--lmcache-stream-models', 'a'];
  expect(refusal(() => load([...STREAM, ...others]))).toContain('lacks a model');
  const none = ['--engine', 'none', ...STREAM];
  expect(refusal(() => loadBare(none))).toContain('lacks a model');
  expect(loadBare([...none, ...others])).toMatchObject({ engine: 'none', lmcacheModel: null });
  const tier = [...none, ...others, '--lmcache-l1-tier', 'disk'];
  expect(refusal(() => loadBare(tier))).toMatch(/^--lmcache-l1-tier 'disk' .*--engine beside it/);
});

test('strict publishes the events of the engine alone', () => {
  const strict = [...STREAM, ...MODEL, '--compat', 'strict'];
  expect(load(strict).compat).toBe('strict');
  const line = refusal(() => load([...strict, '--lmcache-l1-tier', 'disk']));
  expect(line).toMatch(/^--lmcache-l1-tier /);
});

test('its bound of objects is that of all stores', () => {
  const bound = ['--mooncake-max-objects', '10'];
  expect(load([...STREAM, ...MODEL, ...bound]).mooncakeMaxObjects).toBe(10);
  const line = refusal(() => load(bound));
  expect(line).toMatch(
    /^--mooncake-max-objects '10' has no store to go with; allowed: --mooncake-endpoint, --lmcache-stream or /,
  );
});

test.each([
  ['--lmcache-model', 'm'],
  ['--lmcache-stream-models', 'a'],
  ['--lmcache-stream-instance', '5'],
  ['--lmcache-stream-max-events', '5'],
  ['--lmcache-l1-tier', 'disk'],
  ['--lmcache-l2-tier', 'off'],
])('%s means nothing without a stream', (flag, value) => {
  const line = refusal(() => load([flag, value]));
  expect(line.startsWith(`${flag} `)).toBe(true);
  expect(line).toContain('--lmcache-stream');
});
