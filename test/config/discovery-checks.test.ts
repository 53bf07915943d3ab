/** What settings of discovery mean for one another. */
import { expect, test } from 'vitest';
import { maskedSettings } from '../../src/config/masked-settings.ts';
import { load, refusal } from './loading.ts';

test('the worker id is auto with discovery, random without, and a given one stays', () => {
  expect(load(['--discovery', 'file']).workerId).toBeNull();
  expect(maskedSettings(load(['--discovery', 'etcd'])).workerId).toBe('auto');
  expect(load(['--discovery', 'file', '--worker-id', 'auto']).workerId).toBeNull();
  expect(load(['--discovery', 'file', '--worker-id', '0xff']).workerId).toBe(255n);
  expect(load([]).workerId).toBe(2n ** 53n - 1n);
  expect(refusal(() => load(['--worker-id', 'auto']))).toMatch(
    /^--worker-id 'auto' needs a discovery to look in; allowed: an id, or --discovery file or etcd/,
  );
});

test('discovery comes from the variables of Dynamo', () => {
  const env = {
    DYN_DISCOVERY_BACKEND: 'file',
    DYN_FILE_KV: '/shared/kv',
    DYN_EVENT_PLANE_HOST: '10.0.0.7',
  };
  expect(load([], { env })).toMatchObject({
    discovery: 'file',
    discoveryDir: '/shared/kv',
    eventPlaneHost: '10.0.0.7',
    planeEndpoint: 'tcp://*:5570',
  });
});

test.each([
  ['10.0.0.7', 'tcp://127.0.0.1:5570', 'tcp://*:5570'],
  ['fd00::7', 'tcp://[::1]:5570', 'tcp://[::]:5570'],
  ['10.0.0.7', 'tcp://localhost:0', 'tcp://*:0'],
  ['10.0.0.7', 'tcp://10.0.0.8:5570', 'tcp://10.0.0.8:5570'],
  ['10.0.0.7', 'ipc:///tmp/plane', 'ipc:///tmp/plane'],
])('advertising %s, a plane endpoint %s binds %s', (host, planeEndpoint, bound) => {
  const env = { DYN_EVENT_PLANE_HOST: host };
  const argv = ['--discovery', 'file', '--plane-endpoint', planeEndpoint];
  expect(load(argv, { env }).planeEndpoint).toBe(bound);
  expect(load(argv.slice(2), { env }).planeEndpoint).toBe(planeEndpoint);
});

test('names that make no file name are refused with the file registry only', () => {
  const argv = ['--namespace', 'é'.repeat(40)];
  expect(refusal(() => load(['--discovery', 'file', ...argv]))).toMatch(
    /^--namespace '\P{Cc}+' makes a file name of \d+ bytes in the file registry; allowed: 255 bytes\. /u,
  );
  expect(load(['--discovery', 'etcd', ...argv]).discovery).toBe('etcd');
});

test.each([
  [{ ETCD_AUTH_USERNAME: 'ann' }, 'ETCD_AUTH_PASSWORD is missing beside ETCD_AUTH_USERNAME;'],
  [{ ETCD_AUTH_CLIENT_KEY: 'k' }, 'ETCD_AUTH_CLIENT_CERT is missing beside ETCD_AUTH_CLIENT_KEY;'],
  [
    { ETCD_AUTH_CLIENT_CERT: 'c', ETCD_AUTH_CLIENT_KEY: 'k', ETCD_ENDPOINTS: 'https://h' },
    'ETCD_AUTH_CA is missing beside ETCD_AUTH_CLIENT_CERT;',
  ],
  [
    { ETCD_AUTH_CA: 'ca.pem' },
    "--etcd-endpoints 'http://localhost:2379' contradicts ETCD_AUTH_CA;",
  ],
  [
    { ETCD_AUTH_CA: 'ca.pem', ETCD_ENDPOINTS: 'https://h:2379' },
    "ETCD_AUTH_CA 'ca.pem' cannot be read (ENOENT: no such file);",
  ],
])('etcd access %j is refused with etcd, and of no interest without', (env, line) => {
  expect(refusal(() => load(['--discovery', 'etcd'], { env }))).toContain(line);
  expect(load([], { env }).discovery).toBe('none');
});

test('brokers are the XSUB addresses, and asking for one takes an address', () => {
  const url = 'xsub=tcp://b1:5555;tcp://b2:5555 , xpub=tcp://b1:5556;tcp://b2:5556';
  const config = load(['--zmq-broker', url]);
  expect(config.zmqBroker).toEqual(['tcp://b1:5555', 'tcp://b2:5555']);
  expect(maskedSettings(config).zmqBroker).toBe('tcp://b1:5555;tcp://b2:5555');
  const env = { DYN_ZMQ_BROKER_ENABLED: 'true' };
  expect(refusal(() => load([], { env }))).toBe(
    "DYN_ZMQ_BROKER_ENABLED 'true' comes without the address of a broker; allowed: off. " +
      'Set DYN_ZMQ_BROKER_URL to the address of the broker',
  );
  expect(load(['--zmq-broker', url], { env }).zmqBroker).toHaveLength(2);
  expect(load(['--event-plane', 'nats'], { env }).zmqBroker).toBeNull();
});

test('what has no effect is said where it was given', () => {
  expect(load(['--discovery-dir', '/x', '--on-ambiguous', 'stay']).warnings).toEqual([
    '--discovery-dir has no effect: discovery is none',
    '--on-ambiguous has no effect: discovery is none',
  ]);
  expect(load(['--discovery=etcd', '--discovery-dir=/x', '--on-ambiguous=stay']).warnings).toEqual([
    '--discovery-dir has no effect: discovery is etcd',
  ]);
});
