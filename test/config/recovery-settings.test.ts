import { describe, expect, test } from 'vitest';
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import { load, refusal } from './loading.ts';

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

describe('TLS between Dynamo processes', () => {
  const readFile = (path: string): string => {
    if (path === '/missing') throw new Error('ENOENT');
    return 'PEM';
  };
  const withTls = (env: Record<string, string>, ...flags: string[]): WorkerConfig => {
    const named = Object.entries(env).map(([name, value]) => [`DYN_TCP_TLS_${name}`, value]);
    return load(flags, { env: Object.fromEntries(named), readFile });
  };
  const both = { CERT_PATH: '/c', KEY_PATH: '/k', CA_CERT_PATH: '/ca' };

  test('is taken as those have it', () => {
    const config = withTls({ ...both, SERVER_NAME: 'n', HANDSHAKE_TIMEOUT_SECS: '5' });
    expect(config).toMatchObject({
      tcpTlsCertPath: '/c',
      tcpTlsKeyPath: '/k',
      tcpTlsCaCertPath: '/ca',
      tcpTlsServerName: 'n',
      tcpTlsHandshakeTimeoutSecs: 5,
      warnings: [],
    });
  });

  test.each([
    [{ CERT_PATH: '/c' }, 'DYN_TCP_TLS_KEY_PATH is missing beside DYN_TCP_TLS_CERT_PATH'],
    [{ ...both, CLIENT_CERT_PATH: '/c' }, 'DYN_TCP_TLS_CLIENT_KEY_PATH is missing beside'],
    [
      { CLIENT_CERT_PATH: '/c', CLIENT_KEY_PATH: '/k' },
      'DYN_TCP_TLS_CA_CERT_PATH is missing beside DYN_TCP_TLS_CLIENT_CERT_PATH',
    ],
    [
      { CLIENT_CA_CERT_PATH: '/ca' },
      'DYN_TCP_TLS_CERT_PATH is missing beside DYN_TCP_TLS_CLIENT_CA_CERT_PATH',
    ],
    [{ ...both, CA_CERT_PATH: '/missing' }, '/missing'],
  ])('ends the start with what is missing: %j', (env, text) => {
    expect(refusal(() => withTls(env))).toContain(text);
    expect(() => withTls(env, '--request-plane', 'none')).not.toThrow();
  });

  test('on one way alone is said', () => {
    expect(withTls({ CERT_PATH: '/c', KEY_PATH: '/k' }).warnings).toEqual([
      'DYN_TCP_TLS_CERT_PATH is set without DYN_TCP_TLS_CA_CERT_PATH: answers go to routers without TLS',
    ]);
    expect(withTls({ CERT_PATH: '/c', KEY_PATH: '/k', INSECURE: '1' }).warnings).toEqual([]);
  });
});
