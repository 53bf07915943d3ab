/** The replay endpoint and the policies, as a start takes or refuses them. */
import { expect, test } from 'vitest';
import { load, refusal } from './loading.ts';

const AT = '--replay-endpoint';

test('P5: every rank has a replay port of its own, or there is no start', () => {
  expect(load([AT, 'tcp://h:65534', '--dp-size', '2']).replayEndpoint).toBe('tcp://h:65534');
  const line = refusal(() => load([AT, 'tcp://h:65535', '--dp-size', '2']));
  expect(line).toContain('rank 1 port 65536');
  const shared = ['--engine-sockets', 'shared', '--dp-size', '2'];
  expect(load([AT, 'tcp://h:65535', ...shared]).replayEndpoint).toBe('tcp://h:65535');
  expect(refusal(() => load([AT, 'ipc:///x', '--dp-size', '2']))).toContain('2 ranks');
});

test.each([
  ['tcp://127.0.0.1:5557', 1],
  ['tcp://127.0.0.1:5558', 2],
  ['tcp://127.0.0.1:5556', 2],
])('P5: %s is the address of events with %i ranks', (endpoint, ranks) => {
  const given = ['--engine-endpoint', 'tcp://127.0.0.1:5557', '--dp-size', String(ranks)];
  const line = refusal(() => load([...given, AT, endpoint]));
  expect(line).toContain("is the address of an engine's events (tcp://127.0.0.1:5557)");
  expect(load([...given, AT, `tcp://127.0.0.1:${5557 + ranks}`]).warnings).toEqual([]);
});

test('P6: a wildcard to connect to is loopback, also where the event socket is bound', () => {
  const { replayEndpoint, warnings } = load(['--engine-bind', AT, 'tcp://*:5558']);
  expect(replayEndpoint).toBe('tcp://127.0.0.1:5558');
  expect(warnings).toHaveLength(1);
});

test.each([
  [[AT, 'tcp://h:5558'], 'never asks for a replay'],
  [['--on-engine-gap', 'count'], 'only counts what is missing'],
  [['--on-engine-restart', 'keep'], 'takes no notice of restarts'],
  [['--replay-idle-ms', '1000'], 'never asks for a replay'],
])('strict has no %j', (flags, why) => {
  expect(refusal(() => load([...flags, '--compat', 'strict']))).toContain(why);
});

test('an endpoint that nobody is going to ask is said', () => {
  expect(load([AT, 'tcp://h:5558', '--on-engine-gap', 'count']).warnings).toEqual([
    '--replay-endpoint has no effect: missing batches are only counted',
  ]);
});
