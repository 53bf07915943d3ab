import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  formatHttpAddress,
  formatZmqAddress,
  parseHttpAddress,
  parseZmqAddress,
  rankEndpoint,
} from '../../src/config/addresses.ts';
import { load } from './loading.ts';

test.each([
  ['tcp://*:5557', 'tcp://127.0.0.1:5557'],
  ['tcp://0.0.0.0:5557', 'tcp://127.0.0.1:5557'],
  ['tcp://0:5557', 'tcp://127.0.0.1:5557'],
  ['tcp://[::]:5557', 'tcp://[::1]:5557'],
  ['tcp://[0:0::0]:5557', 'tcp://[::1]:5557'],
])('%s is connected to as %s, and that is said', (given, used) => {
  const config = load(['--engine-endpoint', given]);
  expect(config.engineEndpoint).toBe(used);
  expect(config.warnings).toEqual([
    `--engine-endpoint ${given} cannot be connected to: ${used} is used`,
  ]);
});

test.each([
  ['tcp://*:5557'],
  ['tcp://0.0.0.0:5557'],
  ['tcp://[::]:5557'],
  ['ipc:///run/engine.sock'],
])('%s is bound as it stands', (endpoint) => {
  const config = load([
    '--engine-bind',
    '--engine-endpoint',
    endpoint,
    '--plane-endpoint',
    endpoint,
  ]);
  expect(config).toMatchObject({ engineEndpoint: endpoint, planeEndpoint: endpoint, warnings: [] });
});

test('the plane may take free ports', () => {
  expect(load(['--plane-endpoint', 'tcp://*:0']).planeEndpoint).toBe('tcp://*:0');
});

test.each([
  ['tcp://h:5557', 0, 'tcp://h:5557'],
  ['tcp://h:5557', 3, 'tcp://h:5560'],
  ['tcp://[::1]:5557', 3, 'tcp://[::1]:5560'],
  ['tcp://*:0', 3, 'tcp://*:0'],
  ['ipc:///run/engine:5', 0, 'ipc:///run/engine:5'],
])('rankEndpoint() of %s at offset %i is %s', (endpoint, offset, expected) => {
  expect(rankEndpoint(endpoint, offset)).toBe(expected);
});

const host = fc.oneof(
  fc.constantFrom('*', 'localhost', 'engine_0', 'a-b.c'),
  fc.ipV4(),
  fc.ipV6().map((address) => `[${address}]`),
);

test('a ZMQ or HTTP address reads back as it was written', () => {
  fc.assert(
    fc.property(host, fc.nat(65535), (name, port) => {
      const zmq = parseZmqAddress(`tcp://${name}:${port}`);
      expect(zmq && formatZmqAddress(zmq)).toBe(`tcp://${name}:${port}`);
      const http = parseHttpAddress(`${name}:${port}`);
      expect(http && formatHttpAddress(http)).toBe(name === '*' ? undefined : `${name}:${port}`);
    }),
  );
});

test('no text makes an address parser throw', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      for (const prefix of ['', 'tcp://', 'ipc://']) parseZmqAddress(prefix + text);
      parseHttpAddress(text);
    }),
  );
});
