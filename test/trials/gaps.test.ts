/** Trials of lost batches: holes in the engine's numbers, replays, and what no replay brings back. */
import { describe, expect, test } from 'vitest';
import { SocketTrial, type SocketTrialOptions } from '../support/socket-trial.ts';
import { Clr, f, Rm, St } from '../support/trials.ts';

type Batch = ReturnType<typeof f>;

/** Batch n stores block 101 + n. */
function stores(first: number, end: number, rank = 0): Batch[] {
  return Array.from({ length: end - first }, (_, index) =>
    f(first + index, [St(101 + first + index)], { rank }),
  );
}

/** What a router gets of batches `first` to `end` − 1, with ids from `id` on. */
function shownStores(first: number, end: number, id = first + 1): string[] {
  return Array.from(
    { length: end - first },
    (_, index) => `S#${id + index}(∅→${101 + first + index})`,
  );
}

/** A relay whose first replay is over. */
async function started(options: SocketTrialOptions = {}): Promise<SocketTrial> {
  const trial = await SocketTrial.start({ replays: {}, ...options });
  await trial.until(() => trial.worker.ready().ready);
  return trial;
}

/** Kept for replays, and sent live. */
async function publish(trial: SocketTrial, ...messages: readonly Batch[]): Promise<void> {
  trial.replay.keep(...messages);
  for (const frames of messages) await trial.send(frames);
}

const codes = (trial: SocketTrial, offset = 0): string[] =>
  trial.rank(offset).degraded.map(({ code }) => code);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('G1: a jump is filled by a replay, in order, within a second', async () => {
  const trial = await started();
  await publish(trial, ...stores(0, 2));
  trial.replay.keep(...stores(2, 5));
  const startMs = performance.now();
  await publish(trial, ...stores(5, 6));
  expect(await trial.output(6)).toEqual(shownStores(0, 6));
  expect(performance.now() - startMs).toBeLessThan(1000);
  await trial.until(() => trial.rank().engine.replay === 'idle');
  expect(trial.rank()).toMatchObject({
    degraded: [],
    engine: { last_seq: '5', emitted_seq: '5' },
    counters: { missing_batches: 3, lost_batches: 0 },
  });
  expect(await trial.metric('kvrelay_engine_replays_total', { outcome: 'complete' })).toEqual([2]);
});

test('G1: without a replay endpoint it is counted, and the source is degraded', async () => {
  const trial = await SocketTrial.start();
  for (const frames of [...stores(0, 2), ...stores(5, 6)]) await trial.send(frames);
  expect(await trial.output(3)).toEqual(['S#1(∅→101)', 'S#2(∅→102)', 'S#3(∅→106)']);
  expect(trial.rank()).toMatchObject({
    degraded: [{ code: 'engine_gap' }],
    engine: { replay: 'none' },
    counters: { missing_batches: 3, lost_batches: 3 },
  });
  expect(trial.worker.status().state).toBe('degraded');
  await trial.send(f(6, [Clr]));
  await trial.output(4);
  expect(codes(trial)).toEqual([]);
});

test('G3: a server that ignores all other shapes is asked once, and read to its end marker', async () => {
  const trial = await started();
  await publish(trial, ...stores(0, 1));
  trial.replay.keep(...stores(1, 101));
  await publish(trial, ...stores(101, 102));
  expect(await trial.output(102)).toEqual(shownStores(0, 102));
  expect(trial.replay.requests).toEqual([0, 1]);
  expect(trial.rank().counters.lost_batches).toBe(0);
});

test('G4: answers with and without a topic frame are one and the same', async () => {
  const payloads: string[][] = [];
  for (const form of ['old', 'new'] as const) {
    const trial = await started({ replays: { form } });
    await publish(trial, ...stores(0, 1));
    trial.replay.keep(...stores(1, 4));
    await publish(trial, ...stores(4, 5));
    expect(await trial.output(5)).toEqual(shownStores(0, 5));
    await trial.until(() => trial.rank().engine.replay === 'idle');
    expect(trial.rank().counters).toMatchObject({ lost_batches: 0, malformed: 0 });
    payloads.push(trial.payloads());
  }
  expect(payloads[0]).toEqual(payloads[1]);
});

test('G6: the replay port has the offset of the rank, and other ranks are not touched', async () => {
  const trial = await started({ ranks: 2 });
  const [first, second] = trial.replays;
  await trial.send(f(0, [St(101)], { rank: 0 }), 0);
  await trial.send(f(0, [St(201)], { rank: 1 }), 1);
  second?.keep(f(1, [St(202)], { rank: 1 }));
  await trial.send(f(2, [St(203)], { rank: 1 }), 1);
  expect(await trial.output(3, 1)).toEqual(['r1:S#1(∅→201)', 'r1:S#2(∅→202)', 'r1:S#3(∅→203)']);
  expect([first?.requests, second?.requests]).toEqual([[0], [0, 1]]);
  await trial.send(f(1, [St(102)], { rank: 0 }), 0);
  expect(await trial.output(2, 0)).toEqual(['S#1(∅→101)', 'S#2(∅→102)']);
});

test('G7: a batch that comes live and replayed counts once, so its remove gets through', async () => {
  const trial = await started();
  const [f0, f1, f2] = [f(0, [St(101)]), f(1, [St(102)]), f(2, [St(103)])];
  const f3 = f(3, [Rm(101)]);
  await trial.send(f0);
  await trial.output(1);
  trial.replay.keep(f0, f1, f2, f3);
  trial.replay.answersFrom = 0;
  await trial.send(f2);
  await trial.output(4);
  await trial.send(f3);
  await trial.until(() => trial.rank().counters.duplicate_batches === 3);
  expect(await trial.output(4)).toEqual(['S#1(∅→101)', 'S#2(∅→102)', 'S#3(∅→103)', 'R#4(101)']);
  expect(trial.rank().counters).toMatchObject({ lost_batches: 0, engine_restarts: 0 });
});

test('G9: what the engine sent before anybody listened is replayed first', async () => {
  const trial = await SocketTrial.start({ replays: {}, engines: 0 });
  trial.replay.keep(...stores(0, 10));
  await trial.startEngine();
  await trial.until(() => trial.rank().engine.connected);
  await publish(trial, ...stores(10, 11));
  expect(await trial.output(11)).toEqual(shownStores(0, 11));
  expect(trial.replay.requests).toEqual([0]);
  expect(trial.rank().counters.lost_batches).toBe(0);
});

test('G9: without a replay endpoint a first number above 0 is that many lost', async () => {
  const trial = await SocketTrial.start();
  for (const frames of stores(10, 11)) await trial.send(frames);
  expect(await trial.output(1)).toEqual(['S#1(∅→111)']);
  expect(trial.rank().counters.lost_batches).toBe(10);
});

test('G10: what is no batch moves no mark and asks for nothing', async () => {
  const trial = await started();
  const [topic, number, payload] = f(0, [St(999)]) as [Buffer, Buffer, Buffer];
  await trial.send([payload]);
  await trial.send([topic, number]);
  await trial.send([topic, number, payload, payload]);
  await trial.send([topic, number.subarray(1), payload]);
  await trial.send([topic, Buffer.alloc(8, 0xff), payload]);
  await trial.send(f(0, [St(101)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
  expect(trial.rank().counters).toMatchObject({ malformed: 5, lost_batches: 0 });
  expect(trial.replay.requests).toEqual([0]);
});

describe('what a replay cannot bring back', () => {
  test('G1: is lost once, and the rank recovered with loss until its next clear', async () => {
    const trial = await started();
    await publish(trial, ...stores(0, 1));
    trial.replay.keep(...stores(3, 5));
    await publish(trial, ...stores(5, 6));
    expect(await trial.output(4)).toEqual([...shownStores(0, 1), ...shownStores(3, 6, 2)]);
    await trial.until(() => trial.rank().engine.replay === 'idle');
    expect(codes(trial)).toEqual(['recovered_with_loss']);
    expect(trial.rank().counters).toMatchObject({ missing_batches: 4, lost_batches: 2 });
    const { text } = await trial.get('/metrics');
    expect(text).toMatch(/_engines_dropped_events_total\{.*\} 2\n/);
    await publish(trial, f(6, [Clr]));
    await trial.output(5);
    expect(codes(trial)).toEqual([]);
  });

  test('G1: clears the rank where losses clear', async () => {
    const trial = await started({ flags: ['--on-engine-gap', 'clear'] });
    await publish(trial, ...stores(0, 1));
    trial.replay.keep(...stores(3, 4));
    await publish(trial, ...stores(4, 5));
    expect(await trial.output(4)).toEqual([...shownStores(0, 1), 'X#2', ...shownStores(3, 5, 3)]);
    expect(codes(trial)).toEqual([]);
    expect(trial.rank()).toMatchObject({ blocks: { device: 2 }, counters: { lost_batches: 2 } });
    expect(await trial.metric('kvrelay_cleared_total', { cause: 'gap' })).toEqual([1]);
  });

  test('G1: is only counted where that is asked for, whoever could answer', async () => {
    const trial = await started({ flags: ['--on-engine-gap', 'count'] });
    trial.replay.keep(...stores(0, 5));
    for (const frames of [...stores(0, 1), ...stores(4, 5)]) await trial.send(frames);
    expect(await trial.output(2)).toEqual(['S#1(∅→101)', 'S#2(∅→105)']);
    expect(trial.replay.requests).toEqual([]);
    expect(codes(trial)).toEqual(['engine_gap']);
    expect(trial.worker.status().settings.onEngineGap).toBe('count');
  });

  test('G1: does not stop the stream where nobody answers, and asks no more for a while', async () => {
    const trial = await started({ flags: ['--replay-idle-ms', '100'] });
    await publish(trial, ...stores(0, 1));
    await trial.output(1);
    trial.replay.close();
    await trial.send(f(2, [St(103)]));
    expect(await trial.output(2)).toEqual(['S#1(∅→101)', 'S#2(∅→103)']);
    expect(codes(trial)).toEqual(['recovered_with_loss']);
    expect(await trial.metric('kvrelay_engine_replays_total', { outcome: 'timeout' })).toEqual([3]);
    const startMs = performance.now();
    await trial.send(f(4, [St(105)]));
    expect(await trial.output(3)).toContain('S#3(∅→105)');
    expect(performance.now() - startMs).toBeLessThan(200);
  });
});

test('G1: on a shared socket a gap marks every rank, and clears every one where it clears', async () => {
  const flags = ['--engine-sockets', 'shared', '--on-engine-gap', 'clear'];
  const trial = await SocketTrial.start({ ranks: 2, engines: 1, flags });
  await trial.send(f(0, [St(101)], { rank: 0 }));
  await trial.send(f(1, [St(102)], { rank: 1 }));
  await trial.send(f(4, [St(103)], { rank: 0 }));
  expect(await trial.output(3, 0)).toEqual(['S#1(∅→101)', 'X#2', 'S#3(∅→103)']);
  expect(await trial.output(2, 1)).toEqual(['r1:S#1(∅→102)', 'r1:X#2']);
});

test('G7: an answer that the engine cuts short, end marker included, heals', async () => {
  const trial = await started({ flags: ['--replay-idle-ms', '100', '--max-batch-blocks', '1'] });
  trial.replay.keep(...stores(0, 800));
  trial.replay.maxBatches = 200;
  await publish(trial, ...stores(800, 801));
  await trial.output(801);
  expect(trial.rank().counters).toMatchObject({ published_events: 801, lost_batches: 0 });
  expect(trial.replay.requests).toEqual([0, 0, 200, 500, 700]);
});

test('G9: a history of 8,000 batches heals though the engine loses most of its answers', async () => {
  const flags = ['--replay-idle-ms', '200'];
  const trial = await SocketTrial.start({ replays: {}, engines: 0, flags });
  trial.replay.keep(...stores(0, 8000));
  trial.replay.maxBatches = 1400;
  await trial.startEngine();
  await trial.until(() => trial.rank().counters.published_events === 8000, 25_000);
  expect(trial.replay.requests).toEqual([0, 1400, 3500, 4900, 7000]);
  expect(trial.rank().counters).toMatchObject({ lost_batches: 0 });
  expect(await trial.output(8000)).toEqual(shownStores(0, 8000));
});

test('G9: a lost last batch is found once the stream is quiet, and not looked for again', async () => {
  const trial = await started();
  await publish(trial, ...stores(0, 1));
  trial.replay.keep(...stores(1, 2));
  expect(await trial.output(2)).toEqual(shownStores(0, 2));
  await trial.until(() => trial.replay.requests.length === 3);
  await pause(2500);
  expect(trial.replay.requests).toEqual([0, 1, 2]);
});

test('G10: what is no answer costs itself, is counted, and the hole is filled all the same', async () => {
  const trial = await started();
  await publish(trial, ...stores(0, 1));
  trial.replay.keep(...stores(1, 2));
  trial.replay.rubbish = [[Buffer.from('x')], [Buffer.alloc(0), Buffer.alloc(7), Buffer.alloc(1)]];
  await publish(trial, ...stores(2, 3));
  expect(await trial.output(3)).toEqual(shownStores(0, 3));
  await trial.until(() => trial.rank().counters.malformed === 2);
  expect(codes(trial)).toEqual([]);
});

test('G7: live batches that find no room during a replay are replayed as well', async () => {
  const trial = await started({ flags: ['--replay-hold-batches', '5'] });
  await publish(trial, ...stores(0, 1));
  await trial.output(1);
  trial.replay.delayMs = 300;
  trial.replay.keep(...stores(1, 2));
  await publish(trial, ...stores(2, 40));
  expect(trial.rank().queues.replay).toBeLessThanOrEqual(5);
  expect(await trial.output(40)).toEqual(shownStores(0, 40));
  expect(trial.rank().counters.lost_batches).toBe(0);
  const [unheld = 0] = await trial.metric('kvrelay_engine_unheld_batches_total');
  expect(unheld).toBeGreaterThan(0);
});
