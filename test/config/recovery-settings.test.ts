import { expect, test } from 'vitest';
import { load } from './loading.ts';

test('routers are answered over TCP, on this host, unless told otherwise', () => {
  expect(load([])).toMatchObject({
    requestPlane: 'tcp',
    requestPlaneCodec: 'msgpack',
    tcpRpcHost: null,
    tcpRpcPort: 0,
  });
});

test.each([
  ['192.0.2.2', '192.0.2.2'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
])("the host's Dynamo settings are ours too: %s", (given, host) => {
  const env = {
    DYN_REQUEST_PLANE: 'nats',
    DYN_REQUEST_PLANE_CODEC: 'json',
    DYN_TCP_RPC_HOST: given,
    DYN_TCP_RPC_PORT: '7001',
  };
  const config = load([], { env });
  expect(config).toMatchObject({
    requestPlane: 'nats',
    requestPlaneCodec: 'json',
    tcpRpcHost: host,
    tcpRpcPort: 7001,
  });
  expect(config.warnings).toEqual([]);
});

test('NATS servers matter where queries come over NATS, and only while there are answers', () => {
  const servers = ['--nats-server', 'nats://h:4222'];
  expect(load([...servers, '--request-plane', 'nats']).warnings).toEqual([]);
  expect(load([...servers, '--request-plane', 'nats', '--no-indexer']).warnings).toEqual([
    '--nats-server has no effect: the event plane is zmq',
  ]);
  expect(load([...servers, '--request-plane', 'tcp']).warnings).toHaveLength(1);
});

test.each([
  [{ DYN_REQUEST_PLANE: 'nats' }, true],
  [{ DYN_REQUEST_PLANE: 'nats', KVRELAY_INDEXER: 'off' }, false],
  [{}, false],
])('half of a NATS account is refused where NATS is used: %j', (env, isRefused) => {
  const start = (): unknown => load([], { env: { ...env, NATS_AUTH_PASSWORD: 'x' } });
  if (isRefused) expect(start).toThrow(/NATS_AUTH_USERNAME/);
  else expect(start).not.toThrow();
});

test('TLS between Dynamo processes is said to be missing here', () => {
  const env = { DYN_TCP_TLS_CERT_PATH: '/x', DYN_TCP_TLS_KEY_PATH: '' };
  expect(load([], { env }).warnings).toEqual([
    'DYN_TCP_TLS_CERT_PATH is set but not used yet: router queries are answered without TLS',
  ]);
});
