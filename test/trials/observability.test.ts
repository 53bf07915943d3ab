/** Trials of what operators see: counters, logs, pages, and what none of them may show. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseExposition } from '../metrics/exposition.ts';
import { batch } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { createCredentials, createNkeyUser } from '../support/nats-identities.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, message, packed, positional, Rm, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';

const PAGES = ['/', '/metrics', '/health/live', '/health/ready', '/api/status', '/nowhere'];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function startEngine(): Promise<EngineStub> {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  return engine;
}

async function pages(relay: FaultProcess): Promise<string> {
  const texts = await Promise.all(PAGES.map((path) => relay.text(path)));
  return [...texts, await firstOfStream(relay)].join('\n');
}

async function firstOfStream(relay: FaultProcess): Promise<string> {
  const stop = new AbortController();
  const { body } = await fetch(`${relay.httpUrl}/api/stream`, { signal: stop.signal });
  const reader = body?.getReader();
  const bytes = (await reader?.read())?.value;
  stop.abort();
  return Buffer.from(bytes ?? []).toString();
}

const ENGINES = ['vllm', 'sglang', 'trtllm'];
const PLANES = ['zmq', 'nats', 'none'];
/** CI plays each once. */
const PATHS = ENGINES.flatMap((engine, index) =>
  PLANES.filter((_, plane) => scaled(plane === index, true)).map((plane) => ({ engine, plane })),
);

describe('O1: a store counts on every path', () => {
  test.for(PATHS)('from $engine to $plane', async ({ engine, plane }, { skip }) => {
    if (plane === 'nats') skip(!natsServerAvailable());
    const server = plane === 'nats' ? await startNatsServer() : null;
    onTestFinished(() => server?.stop());
    const address = server === null ? [] : ['--nats-server', server.url];
    await countsOne(engine, plane, address);
  });
});

async function countsOne(engineName: string, plane: string, flags: string[]): Promise<void> {
  const engine = await startEngine();
  const relay = await FaultProcess.ready([
    '--engine',
    engineName,
    '--engine-endpoint',
    engine.endpoint,
    '--event-plane',
    plane,
    ...(plane === 'zmq' ? ['--plane-endpoint', 'tcp://127.0.0.1:0'] : flags),
  ]);
  await engine.subscribed();
  const shapes = [St(101), positional(St(102), 9)];
  for (const [sequence, event] of shapes.entries()) await engine.send(f(sequence, [event]));
  const { ranks } = await relay.reaches(({ counters }) => counters.published_events === 2);
  expect(ranks[0]?.counters).toMatchObject({ received: 2, accepted: 2, published_blocks: 2 });
  const stored = { event_type: 'stored' };
  expect(await relay.metric('kvrelay_engine_batches_total')).toBe(2);
  expect(await relay.metric('kvrelay_engine_events_total', stored)).toBe(2);
  expect(await relay.metric('kvrelay_published_messages_total')).toBe(2);
  expect(await relay.metric('kvrelay_published_events_total', stored)).toBe(2);
  expect(await relay.metric('kvrelay_published_blocks_total', stored)).toBe(2);
  const dynamo = 'dynamo_component_kv_publisher_zmq_events_total';
  expect(await relay.metric(dynamo, { ...stored, stage: 'received' })).toBe(2);
  expect(await relay.metric(dynamo, { ...stored, stage: 'accepted' })).toBe(2);
}

test('O4: blocks are counted beside events', async () => {
  const trial = await SocketTrial.start();
  const hashes = Array.from({ length: 500 }, (_, index) => 101 + index);
  await trial.send(f(0, [St(hashes)]));
  await trial.send(f(1, [Rm(hashes.slice(300))]));
  await trial.output(2);
  const counted = async (name: string, event_type: string): Promise<number[]> =>
    trial.metric(`kvrelay_published_${name}_total`, { event_type });
  expect([await counted('events', 'stored'), await counted('blocks', 'stored')]).toEqual([
    [1],
    [500],
  ]);
  expect([await counted('events', 'removed'), await counted('blocks', 'removed')]).toEqual([
    [1],
    [200],
  ]);
  expect(await trial.metric('kvrelay_live_blocks', { storage_tier: 'device' })).toEqual([300]);
});

test('O5: ten thousand stores and a thousand bad messages are a few lines at info', async () => {
  const engine = await startEngine();
  const plane = ['--plane-endpoint', 'tcp://127.0.0.1:0'];
  const relay = await FaultProcess.ready(['--engine-endpoint', engine.endpoint, ...plane]);
  await engine.subscribed();
  let sequence = 0;
  const damaged = Buffer.from([0xc1, 0xff]);
  for (let round = 0; round < 1000; round++) {
    for (let store = 0; store < 10; store++) await engine.send(f(sequence++, [St(sequence)]));
    if (round % 2 === 0) await engine.send(message(sequence++, damaged));
    else await engine.send([Buffer.from('one frame')]);
  }
  await relay.reaches(
    ({ counters }) => counters.published_events === 10_000 && counters.malformed === 1000,
  );
  expect((await relay.terminate()).code).toBe(0);
  expect(relay.lines.length).toBeLessThan(20);
  // Nothing is hushed up: the last word on each cause tells how often it came.
  const told = relay.logs.filter(({ cause }) => String(cause).startsWith('malformed'));
  const heldBack = told.reduce((sum, line) => sum + Number(line.heldBack ?? 0), 0);
  const spoken = told.filter(({ msg }) => msg === 'an engine message was dropped').length;
  expect(heldBack + spoken).toBe(1000);
});

describe.skipIf(!natsServerAvailable())('secrets', () => {
  test('O5: no secret is in a log, on a page, in the metrics or in an error line', async () => {
    const nkey = createNkeyUser();
    const credentials = createCredentials();
    const secrets = {
      NATS_AUTH_PASSWORD: 'open-sesame-1',
      NATS_AUTH_TOKEN: 'open-sesame-2',
      NATS_AUTH_NKEY: nkey.seed,
    };
    const searched = [...Object.values(secrets), credentials.seed, credentials.jwt];
    const methods: Record<string, string>[] = [
      { NATS_AUTH_USERNAME: 'relay', NATS_AUTH_PASSWORD: secrets.NATS_AUTH_PASSWORD },
      { NATS_AUTH_TOKEN: secrets.NATS_AUTH_TOKEN },
      { NATS_AUTH_NKEY: secrets.NATS_AUTH_NKEY },
      { NATS_AUTH_CREDENTIALS_FILE: credentials.credentialsFile },
      {
        ...secrets,
        NATS_AUTH_USERNAME: 'relay',
        NATS_AUTH_CREDENTIALS_FILE: credentials.credentialsFile,
      },
    ];
    // A server that refuses all of them, so that whatever a client says of a refusal is said.
    const server = await startNatsServer({
      extraConfig: 'authorization { user: relay, password: other }',
    });
    onTestFinished(() => server.stop());
    const inWords = methods.slice(-1).map((env) => ({ env, format: 'pretty' }));
    const cases = [...methods.map((env) => ({ env, format: 'json' })), ...inWords];
    const outputs = cases.map(async ({ env, format }) => {
      const plane = ['--event-plane', 'nats', '--nats-server', server.url];
      const log = ['--log-level', 'trace', '--log-format', format];
      const relay = new FaultProcess([...plane, ...log, '--shutdown-timeout-ms', '200'], env);
      await relay.until(() => /authorization/i.test(relay.output));
      const seen = format === 'json' ? await pages(relay) : '';
      expect((await relay.terminate()).code).toBe(0);
      return `${relay.output}\n${seen}`;
    });
    const all = (await Promise.all(outputs)).join('\n');
    expect(all).toContain('NATS_AUTH_CREDENTIALS_FILE is not used');
    for (const secret of searched) expect(all).not.toContain(secret);
  });

  test('O5: nor in the line that ends a start', async () => {
    const secret = 'open-sesame-3';
    const attempts: [string[], Record<string, string>][] = [
      [[], { NATS_AUTH_PASSWORD: secret }],
      [['--nats-server', `nats://relay:${secret}@127.0.0.1:4222`], {}],
      [[], { NATS_AUTH_TOKEN: `${secret}\u0007` }],
      [[], { NATS_AUTH_USERNAME: 'relay', NATS_AUTH_PASSWORD: `${secret}${'x'.repeat(2000)}` }],
    ];
    const refusals = attempts.map(async ([flags, env]) => {
      const refused = new FaultProcess(['--event-plane', 'nats', ...flags], env);
      expect((await refused.exited).code).toBe(2);
      expect(refused.lines).toHaveLength(1);
      expect(refused.output).not.toContain(secret);
    });
    await Promise.all(refusals);
  });

  test('O5: nor where a key or a credentials file is of no use', async () => {
    const secret = 'SUAOPENSESAME4OPENSESAME4OPENSESAME4OPENSESAME4OPENSESAME4';
    const { credentialsFile } = createCredentials();
    const attempts: Record<string, string>[] = [
      { NATS_AUTH_NKEY: secret },
      { NATS_AUTH_CREDENTIALS_FILE: `${credentialsFile}.gone` },
    ];
    const relays = attempts.map(async (env) => {
      const relay = new FaultProcess(['--event-plane', 'nats', '--log-level', 'trace'], env);
      await relay.until(() => relay.output !== '' || relay.hasEnded);
      await pause(500);
      await relay.terminate();
      expect(relay.output).not.toBe('');
      expect(relay.output).not.toContain(secret);
    });
    await Promise.all(relays);
  });
});

test('O6: whatever a batch has for a time, the metrics stay numbers and the stream goes on', async () => {
  const trial = await SocketTrial.start();
  const times = [Number.NaN, null, 'noon', 1e300, -1, Number.POSITIVE_INFINITY, 2n ** 63n];
  for (const [sequence, time] of times.entries()) {
    await trial.send(message(sequence, packed([time, [St(101 + sequence)], 0])));
  }
  await trial.send(f(times.length, [St(201, { parent: 2n ** 64n - 1n })]));
  await trial.until(() => trial.rank().counters.published_events > 0);
  const received = await trial.output(1);
  expect((await trial.output(received.length)).at(-1)).toContain('201');
  const { text } = await trial.get('/metrics');
  expect(text).not.toMatch(/ (nan|[+-]?inf)$/im);
  for (const { value } of parseExposition(text)) expect(Number.isFinite(value)).toBe(true);
});

test('O8: an engine that was never there is shown, and not as healthy', async () => {
  const trial = await SocketTrial.start({ engines: 0 });
  await pause(300);
  expect(await trial.metric('kvrelay_engine_connected')).toEqual([0]);
  expect(trial.rank()).toMatchObject({ state: 'connecting', engine: { connected: false } });
  expect(trial.rank().degraded.map(({ code }) => code)).toEqual(['engine_disconnected']);
  expect((await trial.get('/health/ready')).status).toBe(503);
  expect((await trial.get('/health/live')).status).toBe(200);
  expect(await trial.metric('kvrelay_degraded', { reason: 'engine_disconnected' })).toEqual([1]);
});

test('O10: token ids are nowhere, and nobody from outside is listened to', async () => {
  const engine = await startEngine();
  const relay = await FaultProcess.ready([
    '--engine-endpoint',
    engine.endpoint,
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
    '--log-level',
    'trace',
  ]);
  await engine.subscribed();
  const tokens = [987_654_321, 987_654_322, 987_654_323, 987_654_324];
  const events = [
    St(101, { tokens }),
    positional(St(102, { tokens }), 9),
    // And where something is wrong with the event: warnings must not show it either.
    St(103, { tokens, size: 16 }),
    St(104, { tokens: tokens.slice(1) }),
    { ...St(105, { tokens }), type: 'BlockMoved' },
    { ...St(106, { tokens }), block_hashes: 'none' },
    { ...St(107), token_ids: '987654321' },
    { ...St(108, { tokens }), extra_keys: [['987654321']] },
    St(109, { tokens, medium: '987654321' }),
  ];
  for (const [sequence, event] of events.entries()) await engine.send(f(sequence, [event]));
  await engine.send(message(events.length, packed(batch([tokens]))));
  await engine.send(message(events.length + 1, packed({ tokens })));
  await relay.reaches((rank) => rank.engine.last_seq === String(events.length + 1));
  const seen = await pages(relay);
  const { plane_endpoint } = (await relay.status()).ranks[0] ?? {};
  const ports = [relay.httpUrl, plane_endpoint ?? ''].map((url) => Number(/\d+$/.exec(url)?.[0]));
  for (const port of ports) {
    await once(connect(port, '127.0.0.1'), 'connect');
    for (const address of outerAddresses()) {
      await expect(once(connect(port, address), 'connect')).rejects.toThrow(/ECONNREFUSED/);
    }
  }
  expect((await relay.terminate()).code).toBe(0);
  expect(relay.lines.length).toBeGreaterThan(3);
  for (const hidden of ['98765432', '3ade68b1', 'B168DE3A']) {
    expect(`${relay.output}\n${seen}`).not.toContain(hidden);
  }
});

/** Addresses of this host that are not the loopback one that is listened on. */
function outerAddresses(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const outer = addresses.filter(({ family, internal }) => family === 'IPv4' && !internal);
  const second = process.platform === 'linux' ? ['127.0.0.2'] : [];
  return [...outer.map(({ address }) => address), ...second];
}

test('O13: half a million blocks make the status neither slow nor large', async () => {
  const engine = await startEngine();
  const flags = ['--event-plane', 'none', '--engine-endpoint', engine.endpoint];
  const relay = await FaultProcess.ready(flags);
  await engine.subscribed();
  const perMessage = 5000;
  for (let sequence = 0; sequence < 100; sequence++) {
    const hashes = Array.from(
      { length: perMessage },
      (_, block) => 1 + sequence * perMessage + block,
    );
    await engine.send(f(sequence, [St(hashes)]));
  }
  await relay.reaches(({ blocks }) => blocks.device === 500_000);
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const startMs = performance.now();
    const text = await relay.text('/api/status');
    times.push(performance.now() - startMs);
    expect(Buffer.byteLength(text)).toBeLessThan(100_000);
    expect(Buffer.byteLength(await relay.text('/metrics'))).toBeLessThan(100_000);
  }
  // The machine may be busy with something else for a moment; the status is not slow if it is not always.
  expect(Math.min(...times)).toBeLessThan(200);
  expect([...times].sort((a, b) => a - b)[2]).toBeLessThan(200);
});
