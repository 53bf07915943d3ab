import { expect, test } from 'vitest';
import { loadEndpoint } from '../../src/config/addresses.ts';
import { maskedSettings } from '../../src/config/masked-settings.ts';
import { load, refusal } from './loading.ts';

const URL = 'http://127.0.0.1:8000/metrics';

test.each([
  [URL, URL],
  ['http://127.0.0.1:8000', URL],
  ['http://127.0.0.1:8000/', URL],
  ['https://engine.example/v1/metrics', 'https://engine.example/v1/metrics'],
  ['http://[::1]:30000', 'http://[::1]:30000/metrics'],
])('%s is read at %s', (given, url) => {
  expect(load(['--engine-metrics', given]).engineMetrics).toBe(url);
  const env = { KVRELAY_ENGINE_METRICS: given };
  expect(maskedSettings(load([], { env })).engineMetrics).toBe(url);
});

test('a user name in the address is refused and not repeated', () => {
  const line = refusal(() => load(['--engine-metrics', 'http://ann:hunter2@h/metrics']));
  expect(line).toMatch(/^--engine-metrics 'http:/);
  expect(line).not.toContain('hunter2');
});

test.each([
  [['--engine', 'trtllm'], /^--engine-metrics .* for --engine trtllm; allowed: /],
  [['--compat', 'strict'], /contradicts --compat strict, which publishes no worker load/],
  [
    ['--plane-endpoint', 'tcp://127.0.0.1:65535'],
    /^--plane-endpoint .* worker load's address tcp:\/\/127.0.0.1:65536; allowed: /,
  ],
  [['--plane-endpoint', `ipc:///${'x'.repeat(103)}`], /worker load's address ipc:.*; allowed: /],
])('with %j it ends the start', (flags, line) => {
  expect(refusal(() => load(['--engine-metrics', URL, ...flags]))).toMatch(line);
  expect(() => load(flags)).not.toThrow();
});

test('the load has the address behind the ranks', () => {
  expect(loadEndpoint('tcp://127.0.0.1:5570', 4)).toBe('tcp://127.0.0.1:5574');
  expect(loadEndpoint('tcp://127.0.0.1:0', 4)).toBe('tcp://127.0.0.1:0');
  expect(loadEndpoint('ipc:///run/plane', 1)).toBe('ipc:///run/plane.load');
});
