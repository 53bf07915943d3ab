import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import {
  advertisedEndpoint,
  isLoopbackEndpoint,
} from '../../src/connections/advertised-endpoint.ts';

test.each([
  ['tcp://127.0.0.1:5570', null, 'tcp://127.0.0.1:5570'],
  ['tcp://10.0.0.8:5570', null, 'tcp://10.0.0.8:5570'],
  ['tcp://0.0.0.0:41234', '10.0.0.7', 'tcp://10.0.0.7:41234'],
  ['tcp://[::]:41234', 'fd00::7', 'tcp://[fd00::7]:41234'],
  ['tcp://0.0.0.0:41234', 'pod-1.example', 'tcp://pod-1.example:41234'],
  ['ipc:///tmp/plane', '10.0.0.7', 'ipc:///tmp/plane'],
])('a socket on %s, host %s, is announced as %s', (bound, host, advertised) => {
  expect(advertisedEndpoint(bound, host)).toBe(advertised);
});

test('a wildcard is announced as an address of this host, outside of it where there is one', () => {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const [, address] =
    /^tcp:\/\/\[?(.*?)\]?:5570$/.exec(advertisedEndpoint('tcp://*:5570', null)) ?? [];
  const announced = own.find((one) => one.address === address);
  expect(announced).toBeDefined();
  expect(announced?.internal).toBe(own.every(({ internal }) => internal));
});

test.each([
  ['tcp://127.0.0.1:1', true],
  ['tcp://127.9.9.9:1', true],
  ['tcp://localhost:1', true],
  ['tcp://[::1]:1', true],
  ['ipc:///tmp/plane', true],
  ['tcp://10.0.0.7:1', false],
  ['tcp://[fd00::1]:1', false],
  ['tcp://localhost.example:1', false],
])('%s is only for this host: %s', (endpoint, isLoopback) => {
  expect(isLoopbackEndpoint(endpoint)).toBe(isLoopback);
});
