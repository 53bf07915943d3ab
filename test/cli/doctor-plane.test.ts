/** `kvrelay doctor` on planes, this host and a relay that runs: each check fails for its cause, and passes without it. */
import { writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { connect } from 'nats';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { clockCheck, nodeCheck } from '../../src/cli/doctor/host-checks.ts';
import { RunningWorker } from '../status/running-worker.ts';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { startHttpStub } from '../support/http-stub.ts';
import { createNkeyUser } from '../support/nats-identities.ts';
import {
  type NatsServerOptions,
  natsServerAvailable,
  startNatsServer,
} from '../support/nats-server.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import { type Diagnosis, diagnose } from './diagnosis.ts';
import { CliProcess, temporaryFolder } from './record-process.ts';

/** An engine that nobody finds at once, so that a trial takes no longer than it has to. */
let nobody: string;
beforeAll(async () => {
  nobody = `tcp://127.0.0.1:${await freePorts(1)}`;
});

function diagnosed(flags: readonly string[], env: Record<string, string> = {}): Promise<Diagnosis> {
  return diagnose(['--engine-endpoint', nobody, '--block-size', '4', ...flags], env);
}

test('settings warns of what has no effect', async () => {
  const odd = await diagnosed(['--http', 'off'], { KVRELAY_BLOKC_SIZE: '16' });
  expect(odd.of('settings')).toMatchObject({ state: 'warn' });
  expect(odd.of('settings').text).toMatch(/KVRELAY_BLOKC_SIZE is no setting/);
  expect((await diagnosed(['--http', 'off'])).of('settings').state).toBe('ok');
});

test.each([
  [['--block-size', '0'], /--block-size '0' is not possible/],
  [['--block-size', '4', '--nonsense'], /--nonsense is not a flag/],
  [['--block-size', '4', '--seconds', '0'], /--seconds '0' is not possible/],
  [['--block-size', '4', '--seconds'], /--seconds has no value/],
  [['--block-size', '4', '--json', '--json'], /--json is given twice/],
])('bad usage is one line, with exit code 2: %j', async (flags, expected) => {
  const child = new CliProcess(['doctor', ...flags]);
  expect(await child.exitCode()).toBe(2);
  expect(child.stdout).toBe('');
  expect(child.logs.map(({ msg }) => msg)).toEqual([expect.stringMatching(expected)]);
});

test('takes the configuration file and the environment of run', async () => {
  const path = join(temporaryFolder(), 'relay.json');
  writeFileSync(path, JSON.stringify({ blockSize: 4, eventPlane: 'none', http: 'off' }));
  const found = await diagnose(['--config', path], { KVRELAY_ENGINE_ENDPOINT: nobody });
  expect(found.of('engine_reachable').text).toBe(`${nobody}: nobody listens there`);
  expect(found.of('block_size').state).toBe('skipped');
  expect(found.of('plane_address').text).toBe('the event plane is none');
});

test('node_version fails for a Node that is too old', () => {
  expect(nodeCheck('18.20.1')).toMatchObject({ state: 'fail' });
  expect(nodeCheck('20.0.0')).toMatchObject({ state: 'ok' });
  expect(nodeCheck('104.1.0')).toMatchObject({ state: 'ok' });
});

test("clock fails for a time long ago, and warns where the engine's clock differs", () => {
  const now = Date.UTC(2027, 1, 2);
  expect(clockCheck(Date.UTC(1970, 0, 2), null)).toMatchObject({ state: 'fail' });
  expect(clockCheck(now, null)).toMatchObject({ state: 'ok' });
  expect(clockCheck(now, -200)).toMatchObject({ state: 'ok' });
  const behind = clockCheck(now, -7400);
  expect(behind).toMatchObject({ state: 'warn' });
  expect(behind.text).toMatch(/^batches of the engine are stamped 7 s behind our clock/);
  expect(clockCheck(now, 60_000).text).toMatch(/60 s ahead of/);
});

test('http_address fails where another service has it', async () => {
  const { address } = await startHttpStub({});
  const taken = await diagnosed(['--http', address]);
  expect(taken.of('http_address')).toMatchObject({ state: 'fail' });
  expect(taken.of('http_address').text).toMatch(/another service has it$/);
  const free = await diagnosed(['--http', `127.0.0.1:${await freePorts(1)}`]);
  expect(free.of('http_address').state).toBe('ok');
});

test('plane_address fails where it is in use or no address of this host', async () => {
  const other = await EngineStub.start();
  onTestFinished(() => other.close());
  const taken = await diagnosed(['--http', 'off', '--plane-endpoint', other.endpoint]);
  expect(taken.of('plane_address').text).toBe(`${other.endpoint} cannot be bound: it is in use`);
  const foreign = await diagnosed(['--http', 'off', '--plane-endpoint', 'tcp://192.0.2.1:5570']);
  expect(foreign.of('plane_address').text).toMatch(/this host has no such address$/);
  const free = await diagnosed(['--http', 'off', '--plane-endpoint', 'tcp://127.0.0.1:0']);
  expect(free.of('plane_address').state).toBe('ok');
});

test('plane_address leaves an ipc path to whoever has it', async () => {
  const endpoint = `ipc://${join(temporaryFolder(), 'plane')}`;
  const free = await diagnosed(['--http', 'off', '--plane-endpoint', endpoint]);
  expect(free.of('plane_address').state).toBe('ok');
  const other = await EngineStub.start(endpoint);
  onTestFinished(() => other.close());
  const flags = ['--http', 'off', '--plane-endpoint', endpoint];
  expect((await diagnosed(flags)).of('plane_address').state).toBe('fail');
  // It still has it.
  expect((await diagnosed(flags)).of('plane_address').state).toBe('fail');
});

test('plane_address fails for an ipc path that no socket can be made at', async () => {
  const folder = temporaryFolder();
  const found = async (path: string): Promise<string> => {
    const flags = ['--http', 'off', '--plane-endpoint', `ipc://${path}`];
    return (await diagnosed(flags)).of('plane_address').text;
  };
  expect(await found(join(folder, 'none', 'plane'))).toMatch(/its folder does not exist$/);
  writeFileSync(join(folder, 'notes'), '');
  expect(await found(join(folder, 'notes'))).toMatch(/what is there is no socket$/);
});

test('plane_routers warns of an address that only this host reaches', async () => {
  const loopback = await diagnosed(['--http', 'off']);
  expect(loopback.of('plane_routers')).toMatchObject({ state: 'warn' });
  const [name] = Object.entries(networkInterfaces()).find(([, addresses]) =>
    addresses?.some(({ address }) => address === '127.0.0.1'),
  ) ?? [''];
  const named = await diagnosed(['--http', 'off', '--plane-endpoint', `tcp://${name}:0`]);
  expect(named.of('plane_routers')).toMatchObject({ state: 'warn' });
  const port = await freePorts(1);
  const wildcard = await diagnosed(['--http', 'off', '--plane-endpoint', `tcp://*:${port}`], {
    DYN_EVENT_PLANE_HOST: '192.0.2.7',
  });
  expect(wildcard.of('plane_routers')).toMatchObject({
    state: 'ok',
    text: `routers connect to tcp://192.0.2.7:${port}`,
  });
});

test('plane_broker fails where there is no broker', async () => {
  const broker = await ZmqBroker.start();
  onTestFinished(() => broker.close());
  const flags = ['--http', 'off', '--zmq-broker'];
  expect((await diagnosed([...flags, broker.url])).of('plane_broker').state).toBe('ok');
  const gone = broker.url.replace(/xsub=tcp:\/\/127.0.0.1:\d+/, `xsub=${nobody}`);
  const found = await diagnosed([...flags, gone]);
  expect(found.of('plane_broker').text).toBe(`${nobody}: nobody listens there`);
});

test('a relay that runs is no obstacle, and goes on', async () => {
  const running = await RunningWorker.start(1);
  onTestFinished(() => running.stop());
  running.play(20);
  const [before] = (await running.status()).ranks;
  const engine = ['--engine-endpoint', before?.engine.endpoint ?? '', '--block-size', '4'];
  const plane = ['--plane-endpoint', before?.plane_endpoint ?? ''];
  const found = await diagnose([...engine, ...plane, '--http', new URL(running.url).host]);
  expect(found.code).toBe(0);
  expect(found.of('http_address').text).toMatch(/^kvrelay \S+ runs at 127\.0\.0\.1:\d+ \(ready\)$/);
  expect(found.of('plane_address').text).toMatch(/is held by the relay that runs$/);
  expect(found.of('engine_events').state).toBe('ok');
  const [after] = (await running.status()).ranks;
  expect(after?.counters.received).toBeGreaterThan(before?.counters.received ?? 0);
  expect(after).toMatchObject({ degraded: [], counters: { lost_batches: 0, malformed: 0 } });
});

test('a signal ends it with what is known', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const flags = ['--engine-endpoint', engine.endpoint, '--block-size', '4', '--http', 'off'];
  const child = new CliProcess(['doctor', '--seconds', '60', ...flags]);
  await engine.subscribed();
  expect(await child.exitCode('SIGTERM')).toBe(0);
  expect(child.stdout).toMatch(/^ok {7}engine_publisher {3}it is a publisher$/m);
});

describe.skipIf(!natsServerAvailable())('nats_server', () => {
  async function serverWith(options: NatsServerOptions = {}): Promise<string[]> {
    const server = await startNatsServer(options);
    onTestFinished(() => server.stop());
    return ['--http', 'off', '--event-plane', 'nats', '--nats-server', server.url];
  }

  test('passes where it lets us in; nats_max_payload as well', async () => {
    const found = await diagnosed(await serverWith());
    expect(found.of('nats_server').text).toMatch(
      /^NATS \d+\.\d+\.\d+ lets us in at 127\.0\.0\.1:\d+$/,
    );
    expect(found.of('nats_max_payload').state).toBe('ok');
    expect(found.of('plane_address').text).toBe('the event plane is nats');
  });

  test('fails where nobody listens', async () => {
    const server = nobody.replace('tcp:', 'nats:');
    const found = await diagnosed([
      '--http',
      'off',
      '--event-plane',
      'nats',
      '--nats-server',
      server,
    ]);
    expect(found.of('nats_server').text).toBe(`${server}: nobody listens there`);
    expect(found.of('nats_max_payload').state).toBe('skipped');
  });

  test('fails where the account is refused, without a secret in what it says', async () => {
    const extraConfig = 'authorization { user: relay, password: "the-right-one" }';
    const flags = await serverWith({ extraConfig });
    const account = { NATS_AUTH_USERNAME: 'relay', NATS_AUTH_PASSWORD: 'the-wrong-one' };
    const refused = await diagnosed(flags, account);
    expect(refused.of('nats_server').text).toMatch(/the server refuses the account$/);
    expect(refused.output).not.toMatch(/the-wrong-one/);
    const right = { ...account, NATS_AUTH_PASSWORD: 'the-right-one' };
    expect((await diagnosed(flags, right)).of('nats_server').state).toBe('ok');
    const { seed } = createNkeyUser();
    const nkey = await diagnosed(flags, { NATS_AUTH_NKEY: seed });
    expect(nkey.of('nats_server').state).toBe('fail');
    expect(nkey.output).not.toContain(seed);
  });

  test('nats_max_payload warns of a server that takes less', async () => {
    const found = await diagnosed(await serverWith({ maxPayloadBytes: 65_536 }));
    expect(found.of('nats_max_payload')).toMatchObject({ state: 'warn' });
    expect(found.of('nats_max_payload').text).toMatch(/takes 65536 bytes/);
  });

  test('ambiguous_source fails where somebody else publishes for our worker and rank', async () => {
    const flags = await serverWith();
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const beside = ['--engine-endpoint', engine.endpoint, '--block-size', '4'];
    const other = new CliProcess(['run', ...beside, '--worker-id', '7', ...flags]);
    await engine.subscribed();
    const url = flags.at(-1)?.replace('nats://', '') ?? '';
    const client = await connect({ servers: url });
    onTestFinished(() => client.close());
    let sequence = 0;
    const timer = setInterval(() => {
      void engine.send(batchFrames(batch([storeEvent([++sequence])]), sequence));
    }, 50);
    onTestFinished(() => clearInterval(timer));
    await new Promise<void>((resolve) => {
      client.subscribe('>', { callback: () => resolve() });
    });
    const same = await diagnosed([...flags, '--worker-id', '7']);
    expect(same.of('ambiguous_source')).toMatchObject({
      state: 'fail',
      text: 'somebody else publishes for worker 7, rank 0 on NATS',
    });
    const another = await diagnosed([...flags, '--worker-id', '8']);
    expect(another.of('ambiguous_source').state).toBe('ok');
    expect(another.of('worker').state).toBe('ok');
    const random = await diagnosed(flags);
    expect(random.of('ambiguous_source').state).toBe('skipped');
    expect(random.of('worker').state).toBe('warn');
    expect(await other.exitCode('SIGTERM')).toBe(0);
  });
});
