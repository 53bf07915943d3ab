import { expect, test } from 'vitest';
import { type SettingKey, settingKeys, settingOf } from '../../src/config/settings-table.ts';
import { load, loadBare, refusal } from './loading.ts';

/** For each setting, values it must refuse. */
const wrongValues: Record<SettingKey, readonly string[]> = {
  config: ['', 'missing.json'],
  lmcacheStream: ['', '127.0.0.1:5555', 'tcp://h', 'tcp://h:70000', 'udp://h:1', 'ipc://'],
  lmcacheModel: [''],
  lmcacheStreamModels: ['', 'a,', 'a,a', 'a,b,c,d,e,f,g,h', 'a\u0007'],
  lmcacheStreamInstance: ['-1', '1.5', '281474976710657', ''],
  lmcacheStreamMaxEvents: ['0', '1025', ''],
  lmcacheL1Tier: ['device', 'gpu', ''],
  lmcacheL2Tier: ['device', 'gpu', ''],
  mooncakeEndpoint: ['', '127.0.0.1:5560', 'tcp://h', 'tcp://h:70000', 'udp://h:1', 'ipc://'],
  mooncakeMaster: ['', 'h:x', 'ftp://h:1', 'http://u@h:1', 'http://h:1/path', 'http://h:1?q'],
  mooncakeKeyPattern: [''],
  mooncakeTier: ['device', 'gpu', ''],
  mooncakeReconcileSeconds: ['-1', '86401', '1.5', ''],
  mooncakeMaxObjects: ['0', '100000001'],
  mooncakeHoldBytes: ['0', '65535', '2147483648'],
  lmcacheCoordinatorListen: ['', '9300', 'h', ':9300', '*:9300', 'http://h:9300', 'h:65536'],
  lmcacheCoordinatorForward: ['', 'h:x', 'ftp://h:1', 'http://u@h:1', 'http://h:1/path'],
  lmcacheCoordinatorMaxBytes: ['0', '65535', '1073741825'],
  lmcacheMaxKeys: ['0', '100000001'],
  lmcacheInstance: ['', 'a\u0001'],
  lmcacheInstanceTimeoutS: ['0', '86401', '1.5'],
  objectBuffer: ['0', '10000001'],
  objectBufferBytes: ['0', '65535', '2147483648'],
  engine: ['none', 'VLLM', 'llama', ''],
  engineEndpoint: [
    '',
    '127.0.0.1:5557',
    'inproc://x',
    'udp://h:1',
    'tcp://h',
    'tcp://h:',
    'tcp://h:x',
    'tcp://h:0',
    'tcp://h:65536',
    'tcp://h:70000',
    'tcp://::1:5557',
    'tcp://[::1:5557',
    'tcp://[xyz]:5557',
    'tcp://999.1.1.1:5557',
    'tcp://h:5557/path',
    'tcp://eth0;h:5557',
    'tcp://u@h:5557',
    'ipc://',
    'ipc://*',
    `ipc:///${'x'.repeat(107)}`,
  ],
  engineBind: ['maybe', ''],
  engineSockets: ['both', ''],
  engineFullReports: ['maybe', ''],
  engineMetrics: [
    '',
    '127.0.0.1:8000',
    'ftp://h/metrics',
    'http://',
    'http://h:x',
    'http://ann:hunter2@h/metrics',
    'http://h/metrics?token=x',
    'http://h/metrics#x',
    'http://h/a b',
    `http://h/${'x'.repeat(1024)}`,
  ],
  engineTopic: ['a\nb', 'x'.repeat(1025)],
  engineReceiveHwm: ['0', '-1', '1e3', '10000001'],
  engineMaxMessageBytes: ['0', '1023', '2147483648', '256 MiB'],
  replayEndpoint: ['', 'h:5558', 'tcp://h:0', 'tcp://h:65536', 'inproc://x'],
  onEngineGap: ['heal', ''],
  onEngineRestart: ['ignore', ''],
  replayHoldBatches: ['0', '-1', '10000001'],
  replayHoldBytes: ['0', '1023', '2147483648'],
  replayIdleMs: ['0', '49', '600001'],
  replayCooldownMs: ['-1', '3600001'],
  dpRank: ['-1', '4294967296', '0x1', '1.5'],
  dpSize: ['0', '1025', '-1'],
  blockSize: ['0', '-1', 'abc', '', ' 16', '16 ', '1.5', '65537', '2662439576', '1e2', 'NaN'],
  imageTokenId: ['-1', '4294967296', ''],
  videoTokenId: ['-1', '4294967296', ''],
  workerId: ['Auto', '-1', '', '18446744073709551616', '0x1ffffffffffffffff', '0x', 'ff', '1n'],
  namespace: ['', 'a\tb'],
  component: ['', 'x'.repeat(1025)],
  endpoint: ['', 'dyn://ns.component.endpoint'],
  batchingTimeoutMs: ['-1', '1.5', '', '99999999999999999'],
  maxBatchBlocks: ['0', '-1', '1000001'],
  maxMessageBytes: ['0', '1023', '67108865'],
  eventPlane: ['NATS', 'jetstream', ''],
  planeEndpoint: ['inproc://x', 'tcp://h:65536', 'h:0', 'ipc://*'],
  outboxBytes: ['0', '1023', '2147483648'],
  eventBuffer: ['0', '-1', '4194305', '1e3'],
  eventBufferBytes: ['0', '1023', '2147483648'],
  maxTrackedBlocks: ['0', '100000001'],
  indexer: ['maybe', ''],
  compat: ['loose', ''],
  discovery: ['', 'FILE', 'kubernetes', 'mem'],
  discoveryDir: [''],
  etcdEndpoints: ['', 'h:2379', 'tcp://h', 'http://u:p@h', 'http://h:0', 'http://a,https://b'],
  etcdAuthUsername: [''],
  etcdAuthPassword: [''],
  etcdAuthCa: [''],
  etcdAuthClientCert: [''],
  etcdAuthClientKey: [''],
  etcdLeaseTtl: ['1', '-1', '86401', '30s'],
  onAmbiguous: ['', 'leave'],
  eventPlaneHost: ['', 'h:1', 'tcp://h', '999.1.1.1', '::1::', 'a b'],
  zmqBroker: [
    '',
    'tcp://h:1',
    'xsub=tcp://h:1',
    'xpub=tcp://h:1',
    'xsub=tcp://h:1,xsub=tcp://h:2',
    'xsub=tcp://h:1;,xpub=tcp://h:2',
    'xsub=tcp://*:1,xpub=tcp://h:2',
    'xsub=tcp://h:0,xpub=tcp://h:2',
    'xsub=tcp://h:1,xpub=h:2',
    'xsub=tcp://h:1,xpub=tcp://h:2,',
  ],
  zmqBrokerEnabled: ['', 'maybe'],
  requestPlane: ['TCP', 'http', ''],
  requestPlaneCodec: ['cbor', ''],
  tcpRpcHost: [
    '',
    'localhost',
    'worker-0',
    '0.0.0.0',
    '::',
    '[::]',
    '0:0:0:0:0:0:0:0',
    '1.2.3',
    '1.2.3.256',
    '1.2.3.4:80',
    '[1.2.3.4]:80',
    '::1::',
    'fe80::1%eth0',
  ],
  tcpRpcPort: ['-1', '65536', '', 'x'],
  tcpTlsCertPath: [''],
  tcpTlsKeyPath: [''],
  tcpTlsClientCaCertPath: [''],
  tcpTlsCaCertPath: [''],
  tcpTlsInsecure: ['maybe', ''],
  tcpTlsClientCertPath: [''],
  tcpTlsClientKeyPath: [''],
  tcpTlsServerName: [''],
  tcpTlsHandshakeTimeoutSecs: ['0', '61', '-1'],
  recoveryMaxClients: ['0', '65537'],
  recoveryIdleMs: ['999', '86400001'],
  recoveryMaxAnswers: ['0', '65537'],
  outputHoldMs: ['-1', '2001'],
  resyncQuietMs: ['-1', '3600001'],
  natsServer: [
    '',
    'h:4222',
    'ws://h',
    'nats://',
    'nats://h:0',
    'nats://h:65536',
    'nats://h/x',
    'nats://u:p@h',
    'nats://h,',
    'nats://::1',
  ],
  natsAuthUsername: [''],
  natsAuthPassword: [''],
  natsAuthToken: [''],
  natsAuthNkey: ['', 'a\u0000b'],
  natsAuthCredentialsFile: [''],
  natsTlsCaCertPath: [''],
  natsTlsClientCertPath: [''],
  natsTlsClientKeyPath: [''],
  natsTlsInsecure: ['', '2'],
  natsResumeDelayMs: ['-1', '60001', '1.5', ''],
  natsStartupConnectTimeoutSeconds: ['0', '-1', '86401', 'x'],
  lmcacheBridge: ['', 'h:5571', 'tcp://h:x', 'inproc://x'],
  lmcacheReplay: ['', 'h:5572', 'tcp://h:x', 'inproc://x'],
  lmcacheSamplePercent: ['0', '101', '0.5', ''],
  lmcacheLabelValues: ['0', '100001', ''],
  lmcacheMaxTracked: ['0', '100000001', ''],
  lmcacheMaxPending: ['0', '10000001', ''],
  lmcachePairTimeoutS: ['0', '1000001', ''],
  lmcacheRequestTimeoutS: ['0', '1000001', ''],
  http: ['', '9464', ':9464', '*:9464', '::1:9464', 'h:65536', 'on', 'http://h:1'],
  shutdownTimeoutMs: ['-1', '7001', '5s'],
  warmUp: ['maybe', 'ja'],
  logLevel: ['INFO', 'verbose', ''],
  logFormat: ['text', ''],
};

const oneLineRefusal = /^\P{Cc}+; allowed: \P{Cc}+\. \P{Cc}+$/u;

test.each(settingKeys.flatMap((key) => wrongValues[key].map((value) => [key, value] as const)))(
  '%s refuses %j, whichever source gives it',
  (key, value) => {
    const { flag, environment, remedy } = settingOf(key);
    if (flag !== null && !flag.startsWith('--no-')) {
      // `=` for what looks like a flag to the reader, `-1` must also pass as a word.
      const argv = value === '-1' ? [flag, value] : [`${flag}=${value}`];
      const line = refusal(() =>
        loadBare(key === 'blockSize' ? argv : ['--block-size=16', ...argv]),
      );
      expect(line).toMatch(oneLineRefusal);
      expect(line.startsWith(`${flag} `)).toBe(true);
    }
    if (environment === null) return;
    const env = { KVRELAY_BLOCK_SIZE: '16', [environment]: value };
    const line = refusal(() => loadBare([], { env }));
    expect(line).toMatch(oneLineRefusal);
    expect(line.startsWith(`${environment} `)).toBe(true);
    expect(line.endsWith(remedy)).toBe(true);
  },
);

test('the line names setting, value, what is allowed and the remedy', () => {
  expect(refusal(() => loadBare(['--block-size', '0']))).toBe(
    "--block-size '0' is not possible; allowed: an integer from 1 to 65536. Give the engine's " +
      'block size in tokens (vLLM --block-size, SGLang --page-size, TensorRT-LLM tokens_per_block)',
  );
});

test.each([
  [['--block-size'], '--block-size has no value;'],
  [['--block-size', '--engine-bind'], '--block-size has no value;'],
  [[], '--block-size is missing;'],
])('arguments %j without a block size are refused', (argv, line) => {
  expect(refusal(() => loadBare(argv))).toContain(line);
});

test.each([
  [['--blocksize', '4'], '--blocksize is not a flag;'],
  [['--constructor=1'], '--constructor is not a flag;'],
  [['-b'], '-b is not a flag;'],
  [['extra'], "argument 'extra' belongs to no flag;"],
  [['--engine', 'vllm', '--engine', 'vllm'], '--engine is given twice;'],
  [['--engine-bind', '--engine-bind'], '--engine-bind is given twice;'],
  [['--no-indexer=off'], "--no-indexer 'off' takes no value;"],
  [['--engine-bind', 'on'], "argument 'on' belongs to no flag;"],
])('arguments %j are refused', (argv, line) => {
  expect(refusal(() => load(argv))).toContain(line);
});

test.each([
  [['tcp://127.0.0.1:65535', '2', '0'], 'gives rank 1 port 65536;'],
  [['tcp://127.0.0.1:65534', '4', '8'], 'gives rank 10 port 65536;'],
  [['tcp://127.0.0.1:0', '1', '8'], 'gives rank 8 port 0;'],
  [['ipc:///tmp/engine', '2', '0'], 'has no port for each of 2 ranks;'],
])('engine endpoint, ranks and first rank %j: %s', ([endpoint, size, rank], line) => {
  const argv = [`--engine-endpoint=${endpoint}`, `--dp-size=${size}`, `--dp-rank=${rank}`];
  expect(refusal(() => load(argv))).toContain(line);
});

test('the last rank must still be a u32', () => {
  const argv = ['--dp-rank', '4294967295', '--dp-size', '2'];
  expect(refusal(() => load(argv))).toContain("--dp-rank '4294967295' gives rank 4294967296;");
});

test.each([
  ['[]', 'cannot be used'],
  ['16', 'cannot be used'],
  ['{"blockSize": null}', '(blockSize)'],
  ['{"dpRank": {"a": 1}}', '(dpRank)'],
  ['{blockSize: 16}', 'is not JSON'],
  ['{"block-size": 16}', 'block-size in f.json is not a setting;'],
  ['{"config": "g.json"}', 'config in f.json is not a setting;'],
  ['{"constructor": "x"}', 'constructor in f.json is not a setting;'],
  ['{"indexer": true}', 'indexer in f.json is not a setting;'],
  ['{"dpRank": 1.5}', "dpRank in f.json '1.5' is not possible;"],
  ['{"dpRank": true}', "dpRank in f.json 'true' is not possible;"],
  ['{"engineTopic": 5}', "engineTopic in f.json '5' is not possible;"],
  ['{"engineBind": "maybe"}', "engineBind in f.json 'maybe' is not possible;"],
  ['{"natsAuthPassword": 5}', 'natsAuthPassword in f.json is not possible;'],
  ['{"workerId": 9007199254740993}', 'is not exact as a JSON number;'],
  ['{"lmcacheStream": "tcp://h:1"}', 'lmcacheStream in f.json'],
])('configuration file %s is refused', (content, line) => {
  const message = refusal(() => load(['--config', 'f.json'], { readFile: () => content }));
  expect(message).toContain(line);
  expect(message).toMatch(oneLineRefusal);
});

test('a configuration file that cannot be read is named', () => {
  expect(refusal(() => load(['--config', 'f.json']))).toMatch(
    /^--config 'f\.json' cannot be read \(ENOENT: no such file\); allowed: /,
  );
});

test('a configuration file holds every kind of setting', () => {
  const readFile = () =>
    JSON.stringify({
      blockSize: 32,
      workerId: '0xffffffffffffffff',
      engineBind: true,
      noIndexer: true,
      engineTopic: '',
      http: 'off',
      natsAuthToken: 'secret',
      clearOnStop: false,
    });
  expect(loadBare(['--config=f.json'], { readFile })).toMatchObject({
    blockSize: 32,
    workerId: 0xffff_ffff_ffff_ffffn,
    engineBind: true,
    indexer: false,
    engineTopic: '',
    http: null,
    natsAuthToken: 'secret',
  });
});
