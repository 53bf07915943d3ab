import { expect, test } from 'vitest';
import { maskedSettings } from '../../src/config/masked-settings.ts';
import { load, loadBare, refusal } from './loading.ts';

test('loadConfig() fills in every default', () => {
  const config = load([]);
  expect(maskedSettings(config)).toEqual({
    config: null,
    engine: 'vllm',
    engineEndpoint: 'tcp://127.0.0.1:5557',
    engineBind: false,
    engineSockets: 'per-rank',
    engineTopic: '',
    replayEndpoint: null,
    onEngineGap: 'replay',
    onEngineRestart: 'clear',
    replayHoldBatches: 16_384,
    replayHoldBytes: 67_108_864,
    replayIdleMs: 1000,
    replayCooldownMs: 30_000,
    engineReceiveHwm: 100_000,
    engineMaxMessageBytes: 268_435_456,
    engineFullReports: false,
    engineMetrics: null,
    dpRank: 0,
    dpSize: 1,
    blockSize: 16,
    imageTokenId: null,
    videoTokenId: null,
    workerId: '9007199254740991',
    namespace: 'dynamo',
    component: 'backend',
    endpoint: 'generate',
    batchingTimeoutMs: 0,
    maxBatchBlocks: 128,
    maxMessageBytes: 1_048_576,
    eventPlane: 'zmq',
    planeEndpoint: 'tcp://127.0.0.1:5570',
    outboxBytes: 67_108_864,
    eventBuffer: 16_384,
    eventBufferBytes: 33_554_432,
    maxTrackedBlocks: 8_000_000,
    indexer: true,
    compat: 'safe',
    requestPlane: 'tcp',
    requestPlaneCodec: 'msgpack',
    tcpRpcHost: null,
    tcpRpcPort: 0,
    tcpTlsCertPath: null,
    tcpTlsKeyPath: null,
    tcpTlsClientCaCertPath: null,
    tcpTlsCaCertPath: null,
    tcpTlsInsecure: false,
    tcpTlsClientCertPath: null,
    tcpTlsClientKeyPath: null,
    tcpTlsServerName: null,
    tcpTlsHandshakeTimeoutSecs: 3,
    recoveryMaxClients: 256,
    recoveryIdleMs: 1_800_000,
    recoveryMaxAnswers: 512,
    outputHoldMs: 2000,
    resyncQuietMs: 30_000,
    natsServer: 'nats://127.0.0.1:4222',
    natsAuthUsername: null,
    natsAuthPassword: null,
    natsAuthToken: null,
    natsAuthNkey: null,
    natsAuthCredentialsFile: null,
    natsTlsCaCertPath: null,
    natsTlsClientCertPath: null,
    natsTlsClientKeyPath: null,
    natsTlsInsecure: false,
    natsStartupConnectTimeoutSeconds: 120,
    natsResumeDelayMs: 1000,
    lmcacheBridge: null,
    lmcacheCoordinatorListen: null,
    lmcacheCoordinatorForward: null,
    lmcacheCoordinatorMaxBytes: 16_777_216,
    lmcacheMaxKeys: 8_000_000,
    lmcacheInstanceTimeoutS: 30,
    lmcacheInstance: null,
    lmcacheReplay: null,
    lmcacheSamplePercent: 1,
    lmcacheLabelValues: 200,
    lmcacheMaxTracked: 100_000,
    lmcacheMaxPending: 65_536,
    lmcachePairTimeoutS: 3600,
    lmcacheRequestTimeoutS: 600,
    lmcacheStream: null,
    lmcacheModel: null,
    lmcacheStreamModels: null,
    lmcacheStreamInstance: null,
    lmcacheStreamMaxEvents: 128,
    lmcacheL1Tier: 'host_pinned',
    lmcacheL2Tier: 'disk',
    discovery: 'none',
    discoveryDir: null,
    etcdAuthCa: null,
    etcdAuthClientCert: null,
    etcdAuthClientKey: null,
    etcdAuthPassword: null,
    etcdAuthUsername: null,
    etcdEndpoints: 'http://localhost:2379',
    etcdLeaseTtl: 30,
    eventPlaneHost: null,
    onAmbiguous: 'withdraw',
    zmqBroker: null,
    zmqBrokerEnabled: false,
    mooncakeEndpoint: null,
    mooncakeMaster: null,
    mooncakeKeyPattern: null,
    mooncakeTier: 'external',
    mooncakeReconcileSeconds: 300,
    mooncakeMaxObjects: 4_000_000,
    mooncakeHoldBytes: 67_108_864,
    objectBuffer: 65_536,
    objectBufferBytes: 33_554_432,
    http: '127.0.0.1:9464',
    shutdownTimeoutMs: 5000,
    warmUp: true,
    logLevel: 'info',
    logFormat: 'json',
  });
  expect(config.warnings).toEqual([]);
});

test('loadConfig() freezes what it returns, lists and addresses included', () => {
  const config = load([]);
  for (const part of [config, config.natsServer, config.http, config.warnings]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
});

test('a flag counts before the environment, that before the file, that before the default', () => {
  const readFile = () => '{"dpRank": 1, "maxBatchBlocks": 64, "engine": "trtllm"}';
  const env = { KVRELAY_DP_RANK: '2', KVRELAY_MAX_BATCH_BLOCKS: '32' };
  const config = load(['--dp-rank', '3', '--config', 'f.json'], { env, readFile });
  expect(config).toMatchObject({ dpRank: 3, maxBatchBlocks: 32, engine: 'trtllm' });
  expect(config).toMatchObject({ engineReceiveHwm: 100_000, config: 'f.json' });
});

test("a command's own defaults count before the table's only", () => {
  const defaults = { blockSize: '4', http: 'off' };
  expect(loadBare([], { defaults })).toMatchObject({ blockSize: 4, http: null });
  expect(loadBare(['--block-size=8'], { defaults }).blockSize).toBe(8);
});

test.each([
  ['--engine-topic', ''],
  ['--engine-topic='],
  ['--engine-topic=kv=1'],
  ['--engine-topic', '-x'],
])('the text after %s is the value as it stands', (...argv) => {
  const expected = argv[1] ?? argv[0]?.slice('--engine-topic='.length);
  expect(load(argv, { env: { KVRELAY_ENGINE_TOPIC: 'other' } }).engineTopic).toBe(expected);
});

test.each([
  [['--engine-bind'], {}, { engineBind: true }],
  [['--engine-bind=off'], { KVRELAY_ENGINE_BIND: 'on' }, { engineBind: false }],
  [[], { KVRELAY_ENGINE_BIND: 'TRUE' }, { engineBind: true }],
  [['--no-indexer'], { KVRELAY_INDEXER: 'on' }, { indexer: false }],
  [[], { KVRELAY_INDEXER: 'off' }, { indexer: false }],
])('switches %j with %j read %j', (argv, env, expected) => {
  expect(load(argv, { env })).toMatchObject(expected);
});

test.each([
  ['0', 0n],
  ['9007199254740993', 9_007_199_254_740_993n],
  ['18446744073709551615', 18_446_744_073_709_551_615n],
  ['0xFFFFFFFFFFFFFFFF', 18_446_744_073_709_551_615n],
  ['0x20000000000001', 9_007_199_254_740_993n],
])('worker id %s is kept exactly', (text, workerId) => {
  const config = load(['--worker-id', text]);
  expect(config.workerId).toBe(workerId);
  expect(maskedSettings(config).workerId).toBe(workerId.toString());
});

test('a worker id that is not given has 53 random bits and is not 0', () => {
  const random = (byteCount: number) => new Uint8Array(byteCount);
  expect(load([], { random }).workerId).toBe(1n);
  const bytes = Uint8Array.of(0xe0, 0, 0, 0, 0, 1, 2);
  expect(load([], { random: () => bytes }).workerId).toBe(0x102n);
});

test('batching above 15 s is capped and said', () => {
  const config = load(['--batching-timeout-ms', '15001']);
  expect(config.batchingTimeoutMs).toBe(15_000);
  expect(config.warnings).toEqual([
    '--batching-timeout-ms 15001 is above the limit: 15000 is used',
  ]);
  expect(load(['--batching-timeout-ms', '15000']).warnings).toEqual([]);
});

test.each([
  ['off', null],
  ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
  ['localhost:9464', { host: 'localhost', port: 9464 }],
  ['[::1]:80', { host: '::1', port: 80 }],
])('--http %s is understood', (text, http) => {
  const config = load(['--http', text]);
  expect(config.http).toEqual(http);
  expect(maskedSettings(config).http).toBe(text);
});

test('several NATS servers are one list', () => {
  const config = load(['--event-plane', 'nats', '--nats-server', 'nats://a:4222, tls://[::1]/']);
  expect(config.natsServer).toEqual(['nats://a:4222', 'tls://[::1]']);
});

test.each(['NATS_AUTH_CREDENTIALS_FILE', 'NATS_TLS_CA_CERT_PATH'])(
  '%s that cannot be read is refused, unless nothing reads it',
  (name) => {
    const env = { NATS_SERVER: 'tls://h:1', [name]: '/gone' };
    const line = refusal(() => load(['--event-plane', 'nats'], { env }));
    expect(line).toMatch(
      `${name} '/gone' cannot be read (ENOENT: no such file); allowed: a readable`,
    );
    expect(load([], { env }).eventPlane).toBe('zmq');
  },
);

test('the certificate and key of a client are read together', () => {
  const env = {
    NATS_SERVER: 'tls://h:1',
    NATS_TLS_CLIENT_CERT_PATH: '/cert',
    NATS_TLS_CLIENT_KEY_PATH: '/gone',
  };
  const readFile = (path: string): string => {
    if (path === '/gone') throw new Error('EACCES: permission denied');
    return '';
  };
  expect(refusal(() => load(['--event-plane', 'nats'], { env, readFile }))).toMatch(
    /^NATS_TLS_CLIENT_KEY_PATH '\/gone' cannot be read/,
  );
});

test.each(['SUhunter4', 'UAHUNTER', `SU${'A'.repeat(57)}`])(
  'NKey seed %s is refused unseen',
  (seed) => {
    const env = { NATS_AUTH_NKEY: seed };
    const line = refusal(() => load(['--event-plane', 'nats'], { env }));
    expect(line).toMatch(/^NATS_AUTH_NKEY is no NKey seed; allowed: /);
    expect(line).not.toContain(seed);
  },
);

test('secrets are neither shown in status nor in errors', () => {
  const env = {
    DYN_EVENT_PLANE: 'nats',
    NATS_AUTH_USERNAME: 'ann',
    NATS_AUTH_PASSWORD: 'hunter2',
    NATS_AUTH_TOKEN: 'hunter3',
    NATS_AUTH_NKEY: 'SUhunter4',
  };
  const config = load([], { env });
  expect(config).toMatchObject({ natsAuthPassword: 'hunter2', natsAuthToken: 'hunter3' });
  const shown = maskedSettings(config);
  expect(shown).toMatchObject({ natsAuthUsername: 'ann', natsAuthPassword: '***' });
  expect(JSON.stringify(shown)).not.toContain('hunter');
  expect(config.warnings).toEqual([
    'NATS_AUTH_TOKEN is not used: NATS_AUTH_USERNAME comes first',
    'NATS_AUTH_NKEY is not used: NATS_AUTH_USERNAME comes first',
  ]);
  for (const password of ['hunter2\n', '']) {
    const line = refusal(() => load([], { env: { ...env, NATS_AUTH_PASSWORD: password } }));
    expect(line).toMatch(/^NATS_AUTH_PASSWORD is not possible; allowed: /);
    expect(line).not.toContain('hunter');
  }
  for (const server of ['nats://ann:hun/t@er@h:1', 'ann:hunter@h', 'nats://x,nats://a:hunter@y']) {
    const line = refusal(() => load([], { env: { NATS_SERVER: server } }));
    expect(line).toMatch(/NATS_SERVER .*NATS_AUTH_USERNAME/);
    expect(line).not.toContain('hun');
  }
});

test.each([
  [{ NATS_SERVER: 'nats://h', NATS_TLS_INSECURE: '1' }, "NATS_SERVER 'nats://h' contradicts"],
  [{ NATS_AUTH_USERNAME: 'ann' }, 'NATS_AUTH_PASSWORD is missing beside NATS_AUTH_USERNAME'],
  [{ NATS_TLS_CLIENT_KEY_PATH: 'k' }, 'NATS_TLS_CLIENT_CERT_PATH is missing beside'],
])('NATS access %j is refused on the nats plane only', (env, line) => {
  expect(refusal(() => load(['--event-plane', 'nats'], { env }))).toContain(line);
  expect(load([], { env }).warnings).toEqual([]);
});

test('a setting of another plane is said, unless the environment gives it', () => {
  const config = load(['--nats-server', 'nats://h:1'], {
    env: { KVRELAY_PLANE_ENDPOINT: 'ipc://p' },
  });
  expect(config.warnings).toEqual(['--nats-server has no effect: the event plane is zmq']);
  expect(load([], { env: { NATS_SERVER: 'nats://h:1' } }).warnings).toEqual([]);
});

test.each([
  [['--max-tracked-blocks', '5'], {}, '--max-tracked-blocks'],
  [['--max-message-bytes', '2048'], {}, '--max-message-bytes'],
  [[], { KVRELAY_MAX_TRACKED_BLOCKS: '5' }, 'KVRELAY_MAX_TRACKED_BLOCKS'],
])('%j with %j contradicts --compat strict', (argv, env, name) => {
  const line = refusal(() => load(['--compat', 'strict', ...argv], { env }));
  expect(line).toMatch(new RegExp(`^${name} '\\d+' contradicts --compat strict`));
  expect(load(['--compat', 'strict']).compat).toBe('strict');
});
