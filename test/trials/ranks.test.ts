/** Trials of data-parallel ranks: sockets, ports and addresses, and whose batch is whose. */
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { SocketTrial } from '../support/socket-trial.ts';
import { attemptStart } from '../support/start-attempt.ts';
import { f, St } from '../support/trials.ts';
import { configOf } from '../support/worker-config.ts';

test('P1: every rank has a listener of its own, at the base port and its rank', async () => {
  const trial = await SocketTrial.start({ ranks: 3 });
  for (const rank of [0, 1, 2]) await trial.send(f(0, [St(101 + rank)], { rank }), rank);
  expect(await trial.output(1, 0)).toEqual(['S#1(∅→101)']);
  expect(await trial.output(1, 1)).toEqual(['r1:S#1(∅→102)']);
  expect(await trial.output(1, 2)).toEqual(['r2:S#1(∅→103)']);
  expect(await trial.metric('kvrelay_engine_connected')).toEqual([1, 1, 1]);
  for (const rank of ['0', '1', '2']) {
    expect(await trial.metric('kvrelay_engine_connected', { dp_rank: rank })).toEqual([1]);
  }
});

test('P2: event ids are contiguous for each rank of a shared socket', async () => {
  const flags = ['--engine-sockets', 'shared'];
  const trial = await SocketTrial.start({ ranks: 2, engines: 1, flags });
  for (const [sequence, rank] of [0, 1, 0, 1, 1].entries()) {
    await trial.send(f(sequence, [St(101 + sequence)], { rank }));
  }
  expect(await trial.output(2, 0)).toEqual(['S#1(∅→101)', 'S#2(∅→103)']);
  expect(await trial.output(3, 1)).toEqual(['r1:S#1(∅→102)', 'r1:S#2(∅→104)', 'r1:S#3(∅→105)']);
  // Each rank is a publisher, as routers want it.
  expect(trial.rank(0).publisher_id).not.toBe(trial.rank(1).publisher_id);
  expect(trial.rank(0).plane_endpoint).not.toBe(trial.rank(1).plane_endpoint);
});

test('P3: a batch without a rank is the listener’s, one of a foreign rank is dropped and counted', async () => {
  const trial = await SocketTrial.start({ flags: ['--dp-rank', '2'] });
  await trial.send(f(0, [St(101)], { rank: null }));
  await trial.send(f(1, [St(102)], { rank: 5 }));
  await trial.send(f(2, [St(103)], { rank: 0 }));
  await trial.send(f(3, [St(104)], { rank: 2 }));
  expect(await trial.output(2)).toEqual(['r2:S#1(∅→101)', 'r2:S#2(∅→104)']);
  const rank = { dp_rank: '2' };
  expect(await trial.metric('kvrelay_foreign_rank_batches_total', rank)).toEqual([2]);
  expect(trial.rank().counters.lost_batches).toBe(0);
});

test.each([
  [['--engine-endpoint', 'tcp://127.0.0.1:65535', '--dp-size', '2'], 'rank 1 port 65536'],
  [['--engine-endpoint', 'tcp://127.0.0.1:0'], 'rank 0 port 0'],
  [['--engine-endpoint', 'tcp://127.0.0.1:70000'], 'rank 0 port 70000'],
  [['--plane-endpoint', 'tcp://127.0.0.1:65534', '--dp-size', '3'], 'rank 2 port 65536'],
])('P5: %j ends the start, with rank and port', { retry: 3 }, async (flags, rankAndPort) => {
  const { exitCode, lines } = await attemptStart(['--block-size', '4', ...flags], 2000);
  expect(exitCode).toBe(2);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(rankAndPort);
});

test.each(['*', '0.0.0.0'])('P6: the wildcard %s to connect to is loopback', async (host) => {
  const trial = await SocketTrial.start({ host });
  await trial.send(f(0, [St(101)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
  const used = `tcp://127.0.0.1:${trial.port}`;
  expect(trial.rank().engine.endpoint).toBe(used);
  expect(trial.worker.status().settings.engineEndpoint).toBe(used);
});

test('P6: so is the IPv6 wildcard, and each is said aloud', () => {
  for (const [given, used] of [
    ['tcp://[::]:5557', 'tcp://[::1]:5557'],
    ['tcp://*:5557', 'tcp://127.0.0.1:5557'],
  ] as const) {
    const config = configOf('--block-size', '4', '--engine-endpoint', given);
    expect(config.engineEndpoint).toBe(used);
    expect(config.warnings).toHaveLength(1);
    expect(config.warnings[0]).toContain(given);
    expect(config.warnings[0]).toContain(used);
  }
  const address = 'tcp://*:5557';
  const bound = configOf('--block-size', '4', '--engine-bind', '--engine-endpoint', address);
  expect(bound).toMatchObject({ engineEndpoint: address, warnings: [] });
});

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((address) => address?.address === '::1');

test.skipIf(!hasIpv6)('P6: events flow from the IPv6 wildcard', async () => {
  const trial = await SocketTrial.start({ host: '[::]' });
  await trial.send(f(0, [St(101)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
  expect(trial.rank().engine.endpoint).toBe(`tcp://[::1]:${trial.port}`);
});

test('P8: on the brokerless plane each rank has an address, and all reach their subscribers', async () => {
  const trial = await SocketTrial.start({ ranks: 2 });
  const addresses = trial.worker.status().ranks.map(({ plane_endpoint }) => plane_endpoint);
  expect(new Set(addresses).size).toBe(2);
  await trial.send(f(0, [St(101)], { rank: 0 }), 0);
  await trial.send(f(0, [St(102)], { rank: 1 }), 1);
  expect(await trial.output(1, 0)).toEqual(['S#1(∅→101)']);
  expect(await trial.output(1, 1)).toEqual(['r1:S#1(∅→102)']);
});

test('P11: ranks that never connect are shown, hold back readiness and nobody else’s events', async () => {
  const trial = await SocketTrial.start({ ranks: 4, engines: 2 });
  const engines = trial.worker
    .status()
    .ranks.map(({ engine, state }) => [engine.connected, state, engine.endpoint]);
  expect(engines).toEqual([
    [true, 'idle', `tcp://127.0.0.1:${trial.port}`],
    [true, 'idle', `tcp://127.0.0.1:${trial.port + 1}`],
    [false, 'connecting', `tcp://127.0.0.1:${trial.port + 2}`],
    [false, 'connecting', `tcp://127.0.0.1:${trial.port + 3}`],
  ]);
  expect(await trial.metric('kvrelay_engine_connected')).toEqual([1, 1, 0, 0]);
  for (const rank of [0, 1]) await trial.send(f(0, [St(101 + rank)], { rank }), rank);
  expect(await trial.output(1, 0)).toEqual(['S#1(∅→101)']);
  expect(await trial.output(1, 1)).toEqual(['r1:S#1(∅→102)']);

  const { status, text } = await trial.get('/health/ready');
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({
    waiting_for: [2, 3].map((rank) => `the engine at tcp://127.0.0.1:${trial.port + rank}`),
  });
  for (const offset of [2, 3]) await trial.startEngine(offset);
  await trial.until(() => trial.worker.ready().ready);
  expect((await trial.get('/health/ready')).status).toBe(200);
  expect(await trial.metric('kvrelay_engine_connected')).toEqual([1, 1, 1, 1]);
});
