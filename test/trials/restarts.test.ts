/** Trials of engines that begin anew, of links that die, and of a relay that begins anew itself. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Forwarder } from '../support/forwarder.ts';
import { freePorts } from '../support/free-ports.ts';
import { ReplayStub } from '../support/replay-stub.ts';
import { SocketTrial, type SocketTrialOptions } from '../support/socket-trial.ts';
import { B, f, Rm, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';

type Batch = ReturnType<typeof f>;

/** Batch n stores block `base` + n. */
function stores(base: number, first: number, end: number): Batch[] {
  return Array.from({ length: end - first }, (_, index) =>
    f(first + index, [St(base + first + index)]),
  );
}

async function started(options: SocketTrialOptions = {}): Promise<SocketTrial> {
  const trial = await SocketTrial.start({ replays: {}, ...options });
  await trial.until(() => trial.worker.ready().ready);
  return trial;
}

async function sendAll(trial: SocketTrial, messages: readonly Batch[]): Promise<void> {
  for (const frames of messages) await trial.send(frames);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('R1: a number that goes back is a restart: one clear, counts forgotten, ids go on', async () => {
  const trial = await SocketTrial.start();
  const child = St(102, { parent: 101 });
  await sendAll(trial, [f(0, [St(101)]), f(1, [child]), f(2, [Rm(102)]), f(0, [St(201)])]);
  expect(await trial.output(5)).toEqual([
    'S#1(∅→101)',
    'S#2(101→102)',
    'R#3(102)',
    'X#4',
    'S#5(∅→201)',
  ]);
  // One copy before the restart, one behind it: a single remove is enough.
  await sendAll(trial, [f(1, [St(101)]), f(2, [Rm(101)])]);
  expect((await trial.output(7)).slice(5)).toEqual(['S#6(∅→101)', 'R#7(101)']);
  expect(trial.rank()).toMatchObject({
    degraded: [],
    blocks: { device: 1 },
    counters: { engine_restarts: 1, lost_batches: 0 },
  });
  expect(await trial.metric('kvrelay_cleared_total', { cause: 'restart' })).toEqual([1]);
  expect(trial.warnings.map(({ msg }) => msg)).toEqual(['the engine has restarted']);
});

test('R1: salts are forgotten with it', async () => {
  const trial = await SocketTrial.start();
  const child = St(102, { parent: 101, tokens: B });
  await sendAll(trial, [f(0, [St(101, { salt: 't1' })]), f(1, [child]), f(0, [child])]);
  await sendAll(trial, [f(1, [St(103, { tokens: B })])]);
  await trial.output(5);
  const hashes = trial.events().flatMap(({ blocks }) => blocks.map(({ tokensHash }) => tokensHash));
  const [, salted, unsalted, plain] = hashes;
  expect(unsalted).toBe(plain);
  expect(salted).not.toBe(plain);
});

test('R1: what is pending leaves before the clear', async () => {
  const trial = await SocketTrial.start({ flags: ['--batching-timeout-ms', '10000'] });
  await sendAll(trial, [f(0, [St(101)]), f(1, [St(102, { parent: 101 })]), f(0, [St(201)])]);
  expect(await trial.output(2)).toEqual(['S#1(∅→101,102)', 'X#2']);
});

test('R1: it is kept quiet where what is known is to be kept', async () => {
  const trial = await SocketTrial.start({ flags: ['--on-engine-restart', 'keep'] });
  await sendAll(trial, [f(0, [St(101)]), f(1, [St(102)]), f(0, [St(201)])]);
  expect(await trial.output(3)).toEqual(['S#1(∅→101)', 'S#2(∅→102)', 'S#3(∅→201)']);
  expect(trial.rank().counters.engine_restarts).toBe(1);
});

test('R1: on a shared socket every rank is cleared', async () => {
  const flags = ['--engine-sockets', 'shared'];
  const trial = await SocketTrial.start({ ranks: 2, engines: 1, flags });
  await trial.send(f(0, [St(101)], { rank: 0 }));
  await trial.send(f(1, [St(102)], { rank: 1 }));
  await trial.send(f(0, [St(201)], { rank: 1 }));
  expect(await trial.output(3, 1)).toEqual(['r1:S#1(∅→102)', 'r1:X#2', 'r1:S#3(∅→201)']);
  expect(await trial.output(2, 0)).toEqual(['S#1(∅→101)', 'X#2']);
});

test('A8: what was learned of groups goes with a restart, and only with that', async () => {
  const trial = await SocketTrial.start();
  const learned = St(1, { group: 1, kind: 'full_attention' });
  await sendAll(trial, [f(0, [learned]), f(1, [Rm(1, { group: 1 })])]);
  expect(await trial.output(2)).toEqual(['S#1(∅→1)', 'R#2(1)']);
  await sendAll(trial, [f(0, [Rm(5, { group: 1 }), St(6)])]);
  expect(await trial.output(4)).toEqual(['S#1(∅→1)', 'R#2(1)', 'X#3', 'S#4(∅→6)']);
  expect(trial.rank().filtered_by_reason).toEqual({ unlearned_group_idx: 1 });
});

describe('R3', () => {
  test('R3: a restart whose first batches were lost is seen, and they are replayed', async () => {
    const trial = await started();
    await sendAll(trial, stores(101, 0, 6));
    await trial.output(6);
    trial.replay.keep(...stores(201, 0, 4));
    await sendAll(trial, stores(201, 2, 4));
    const news = ['X#7', 'S#8(∅→201)', 'S#9(∅→202)', 'S#10(∅→203)', 'S#11(∅→204)'];
    expect((await trial.output(11)).slice(6)).toEqual(news);
    expect(trial.rank().counters).toMatchObject({ lost_batches: 0, engine_restarts: 1 });
  });

  test('R3: or lost, where nobody can be asked', async () => {
    const trial = await SocketTrial.start();
    await sendAll(trial, [...stores(101, 0, 6), ...stores(201, 2, 4)]);
    const news = ['X#7', 'S#8(∅→203)', 'S#9(∅→204)'];
    expect((await trial.output(9)).slice(6)).toEqual(news);
    expect(trial.rank().counters).toMatchObject({ lost_batches: 2, engine_restarts: 1 });
  });

  test('R3: a live copy of what a replay brought is none, another batch in its place is one', async () => {
    const trial = await started();
    await sendAll(trial, stores(101, 0, 4));
    await trial.output(4);
    trial.replay.keep(...stores(101, 0, 8));
    await sendAll(trial, stores(101, 5, 6));
    expect(await trial.output(8)).toHaveLength(8);
    await sendAll(trial, stores(101, 6, 7));
    await trial.until(() => trial.rank().counters.duplicate_batches === 2);
    trial.replay.forget();
    trial.replay.keep(...stores(201, 0, 8));
    await sendAll(trial, stores(201, 7, 8));
    const all = await trial.output(17);
    expect(all[8]).toBe('X#9');
    expect(all.slice(9)).toEqual(stores(201, 0, 8).map((_, n) => `S#${n + 10}(∅→${201 + n})`));
    expect(trial.rank().counters).toMatchObject({ lost_batches: 0, engine_restarts: 1 });
  });
});

describe('a lost link', () => {
  test('R7: alone clears nothing, and what was missed on the way is replayed', async () => {
    const trial = await started();
    trial.replay.keep(...stores(101, 0, 6));
    await sendAll(trial, stores(101, 0, 4));
    await trial.output(4);
    await trial.restartEngine();
    await sendAll(trial, stores(101, 6, 7));
    trial.replay.keep(...stores(101, 6, 7));
    const expected = Array.from({ length: 7 }, (_, n) => `S#${n + 1}(∅→${101 + n})`);
    expect(await trial.output(7)).toEqual(expected);
    expect(trial.replay.requests).toContain(3);
    expect(trial.rank()).toMatchObject({
      degraded: [],
      counters: { lost_batches: 0, engine_restarts: 0 },
    });
  });

  test('R7: to an engine that has passed our mark meanwhile is one clear, within a second', async () => {
    const trial = await started();
    trial.replay.keep(...stores(101, 0, 4));
    await sendAll(trial, stores(101, 0, 4));
    await trial.output(4);
    await trial.stopEngine();
    trial.replay.forget();
    trial.replay.keep(...stores(201, 0, 6));
    await trial.startEngine();
    await trial.until(() => trial.rank().engine.connected);
    const startMs = performance.now();
    await trial.until(() => trial.rank().counters.engine_restarts === 1);
    expect(performance.now() - startMs).toBeLessThan(1000);
    await sendAll(trial, stores(201, 6, 7));
    const news = Array.from({ length: 7 }, (_, n) => `S#${n + 6}(∅→${201 + n})`);
    expect((await trial.output(12)).slice(4)).toEqual(['X#5', ...news]);
    expect(trial.rank().counters.lost_batches).toBe(0);
  });

  test('R7: without a replay endpoint a jump behind it is a gap, since it cannot be told', async () => {
    const trial = await SocketTrial.start();
    await sendAll(trial, stores(101, 0, 2));
    await trial.output(2);
    await trial.restartEngine();
    await sendAll(trial, stores(101, 4, 5));
    expect(await trial.output(3)).toEqual(['S#1(∅→101)', 'S#2(∅→102)', 'S#3(∅→105)']);
    expect(trial.rank().degraded.map(({ code }) => code)).toEqual(['engine_gap']);
  });

  test('R7: that is dead without a word is noticed within 15 s, and healed', {
    timeout: 90_000,
  }, async () => {
    const ports = await freePorts(2);
    const [engine, replays] = [
      await EngineStub.start(`tcp://127.0.0.1:${ports}`),
      await ReplayStub.start(`tcp://127.0.0.1:${ports + 1}`),
    ];
    onTestFinished(() => engine.close());
    const forwarder = await Forwarder.to(ports);
    const trial = await SocketTrial.start({
      engines: 0,
      flags: [
        '--engine-endpoint',
        `tcp://127.0.0.1:${forwarder.port}`,
        '--replay-endpoint',
        `tcp://127.0.0.1:${ports + 1}`,
      ],
    });
    await trial.until(() => trial.rank().engine.connected);
    const publish = async (...messages: readonly Batch[]): Promise<void> => {
      replays.keep(...messages);
      for (const frames of messages) await engine.send(frames);
    };
    await publish(...stores(101, 0, 2));
    expect(await trial.output(2)).toHaveLength(2);
    forwarder.freeze();
    const startMs = performance.now();
    await trial.until(() => !trial.rank().engine.connected, 20_000);
    expect(performance.now() - startMs).toBeLessThan(15_000);
    expect(await trial.metric('kvrelay_engine_connected')).toEqual([0]);
    await publish(...stores(101, 2, 4));
    await pause(scaled(0, 15_000));
    forwarder.thaw();
    forwarder.cut();
    await trial.until(() => trial.rank().engine.connected);
    expect(await trial.metric('kvrelay_engine_connected')).toEqual([1]);
    await publish(...stores(101, 4, 5));
    const expected = Array.from({ length: 5 }, (_, n) => `S#${n + 1}(∅→${101 + n})`);
    expect(await trial.output(5)).toEqual(expected);
    expect(trial.rank().counters).toMatchObject({ lost_batches: 0, engine_restarts: 0 });
  });
});

test('R8: a relay that is killed takes everything from 0 again, under a new publisher', async () => {
  const ports = await freePorts(3);
  const engine = await EngineStub.start(`tcp://127.0.0.1:${ports}`);
  onTestFinished(() => engine.close());
  const replays = await ReplayStub.start(`tcp://127.0.0.1:${ports + 1}`);
  const flags = [
    '--engine-endpoint',
    `tcp://127.0.0.1:${ports}`,
    '--replay-endpoint',
    `tcp://127.0.0.1:${ports + 1}`,
    '--plane-endpoint',
    `tcp://127.0.0.1:${ports + 2}`,
  ];
  const publish = async (...messages: readonly Batch[]): Promise<void> => {
    replays.keep(...messages);
    for (const frames of messages) await engine.send(frames);
  };
  const first = await FaultProcess.ready(flags);
  await publish(...stores(101, 0, 10));
  const before = await first.reaches(({ counters }) => counters.published_events === 10);
  first.kill('SIGKILL');
  await first.exited;
  const second = await FaultProcess.ready(flags);
  await publish(...stores(101, 10, 11));
  const after = await second.reaches(({ counters }) => counters.published_events === 11);
  expect(after.ranks[0]).toMatchObject({
    last_event_id: '11',
    blocks: { device: 11 },
    degraded: [],
    counters: { lost_batches: 0, published_blocks: 11 },
  });
  expect(after.ranks[0]?.publisher_id).not.toBe(before.ranks[0]?.publisher_id);
});

test('R8: what is missing from the start it says', async () => {
  const trial = await SocketTrial.start({ replays: {}, engines: 0 });
  trial.replay.keep(...stores(101, 5, 10));
  await trial.startEngine();
  expect(await trial.output(5)).toHaveLength(5);
  expect(trial.rank()).toMatchObject({
    degraded: [{ code: 'recovered_with_loss' }],
    counters: { missing_batches: 5, lost_batches: 5 },
  });
});

describe('readiness', () => {
  test('O12: waits for the first replay, not for what comes later', async () => {
    const slowMs = scaled(1500, 5000);
    const trial = await SocketTrial.start({ replays: { delayMs: slowMs } });
    trial.replay.keep(...stores(101, 0, 3));
    const [live, ready] = [await trial.get('/health/live'), await trial.get('/health/ready')];
    expect([live.status, ready.status]).toEqual([200, 503]);
    expect(ready.text).toContain(`the replay of tcp://127.0.0.1:${trial.port}`);
    await trial.until(() => trial.worker.ready().ready);
    expect((await trial.get('/health/ready')).status).toBe(200);
    await sendAll(trial, stores(101, 9, 10));
    await trial.stopEngine();
    const later = await trial.get('/health/ready');
    expect(later.status).toBe(200);
    expect(later.text).toContain('engine_disconnected');
  });

  test('O12: without a replay endpoint, a connection is enough', async () => {
    const trial = await SocketTrial.start();
    expect((await trial.get('/health/ready')).status).toBe(200);
  });

  test('O12: a first replay that fails is over as well', async () => {
    const endpoint = `tcp://127.0.0.1:${await freePorts(1)}`;
    const flags = ['--replay-endpoint', endpoint, '--replay-idle-ms', '100'];
    const trial = await SocketTrial.start({ flags });
    await trial.until(() => trial.worker.ready().ready);
    expect(await trial.metric('kvrelay_engine_replays_total', { outcome: 'timeout' })).toEqual([3]);
  });
});

test('S4: a replay that nobody answers keeps no process alive', async () => {
  const ports = await freePorts(2);
  const engine = await EngineStub.start(`tcp://127.0.0.1:${ports}`);
  onTestFinished(() => engine.close());
  const relay = await FaultProcess.started([
    '--engine-endpoint',
    `tcp://127.0.0.1:${ports}`,
    '--replay-endpoint',
    `tcp://127.0.0.1:${ports + 1}`,
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
    '--replay-idle-ms',
    '60000',
  ]);
  await engine.subscribed();
  await engine.send(f(0, [St(101)]));
  await engine.send(f(5, [St(106)]));
  await relay.reaches(
    ({ queues, engine: { replay } }) => replay === 'running' && queues.replay === 1,
  );
  const { code, ms } = await relay.terminate();
  expect(code).toBe(0);
  expect(ms).toBeLessThan(8000);
});
