import { unpack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import type { ResponseReader } from '../../support/fake-router.ts';
import { eventually } from '../../support/plane-collector.ts';
import { PATH, type RecoveryTrial, startRecovery, WORKER } from '../../support/recovery-trial.ts';
import { type QueryFields, requestPayload } from '../../support/router-requests.ts';

interface RouterEvent {
  event: { event_id: number; data: { stored: { blocks: { block_hash: bigint }[] } } };
}
type Fields = Record<string, unknown> & { events?: RouterEvent[] };

function answerIn(
  response: ResponseReader | undefined,
  codec: 'msgpack' | 'json',
): Record<string, Fields> {
  const body = response?.messages.find((message) => message.body.length > 0)?.body;
  if (body === undefined) throw new Error('there is no answer');
  const { data, complete_final: isFinal } =
    codec === 'json' ? JSON.parse(body.toString()) : unpack(body);
  expect(isFinal).toBe(false);
  return data;
}

async function answer(
  trial: RecoveryTrial,
  fields: Partial<QueryFields>,
  codec: 'msgpack' | 'json' = 'msgpack',
): Promise<Record<string, Fields>> {
  const query = { worker_id: WORKER, ...fields };
  const { acknowledgement, response } = await trial.router.ask(trial.port, PATH, query, codec);
  expect(acknowledgement).toBe('');
  return answerIn(response, codec);
}

function idsIn(fields: Fields | undefined): number[] {
  return (fields?.events ?? []).map(({ event }) => event.event_id);
}

describe.each(['msgpack', 'json'] as const)('in %s', (codec) => {
  test('the table of the query service is kept', async () => {
    const trial = await startRecovery({ index: { keptEvents: 3 } });
    const ask = (
      start: bigint | null,
      end: bigint | null = null,
    ): Promise<Record<string, Fields>> =>
      answer(trial, { start_event_id: start, end_event_id: end }, codec);

    expect(await ask(null)).toEqual({
      TreeDump: { events: [], last_event_id: 0, reset_scope: 'all' },
    });
    for (let event = 1; event <= 5; event++) trial.index.store(2);
    expect(await ask(3n, 2n)).toEqual({ InvalidRange: { start_id: 3, end_id: 2 } });
    expect(await ask(6n)).toEqual({
      TooNew: { requested_start: 6, requested_end: 5, newest_available: 5 },
    });
    const range = await ask(4n, 4n);
    expect(range.Events?.last_event_id).toBe(5);
    expect(idsIn(range.Events)).toEqual([4, 5]);
    for (const start of [null, 0n, 2n]) {
      const dump = await ask(start);
      expect(dump.TreeDump).toMatchObject({ last_event_id: 5, reset_scope: 'all' });
      expect(idsIn(dump.TreeDump)).toEqual([0, 1, 2, 3, 4]);
    }
    expect(trial.metrics.recoveryQueries).toEqual({
      events: 1,
      tree_dump: 4,
      too_new: 1,
      invalid_range: 1,
      error: 0,
    });
  });

  test.each<[string, Partial<QueryFields>, string]>([
    [
      'another worker',
      { worker_id: 43n },
      `WorkerKvQueryEngine::generate worker_id mismatch: request.worker_id=43 this.worker_id=${WORKER}`,
    ],
    [
      'another rank',
      { dp_rank: 1 },
      'WorkerKvQueryEngine::generate dp_rank mismatch: request.dp_rank=1 this.dp_rank=0',
    ],
    [
      'the status',
      { kind: { status: {} } },
      'KV state-agent status is not supported by this endpoint',
    ],
    [
      "another source's recovery",
      { kind: { state_agent_recovery: {} } },
      'state-agent recovery is not supported by this endpoint',
    ],
  ])('whoever asks for %s is told so in the words of stock', async (_, fields, message) => {
    const trial = await startRecovery();
    expect(await answer(trial, fields, codec)).toEqual({ Error: message });
    expect(trial.holds).toEqual([]);
    expect(trial.metrics.recoveryQueries.error).toBe(1);
  });

  test('a dump of 100,000 blocks is whole, and the event loop turns all the while', async () => {
    const trial = await startRecovery();
    trial.index.store(100_000);
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns++;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    const { response } = await trial.router.ask(trial.port, PATH, { worker_id: WORKER }, codec);
    isDone = true;
    // A slice is 256 KiB of an answer that is written, or 64 KiB of MessagePack turned into JSON.
    const answerBytes = response?.messages[2]?.body.length ?? 0;
    expect(turns).toBeGreaterThan(answerBytes / (256 << 10));
    const json = codec === 'json' ? response?.messages[2]?.body.toString() : undefined;
    if (json !== undefined) {
      const hashes = [...json.matchAll(/"block_hash":(\d+)/g)].map((match) =>
        BigInt(match[1] ?? ''),
      );
      expect(hashes).toEqual(trial.index.blocks.map(({ blockHash }) => blockHash));
    } else {
      const blocks =
        answerIn(response, codec).TreeDump?.events?.[0]?.event.data.stored.blocks ?? [];
      expect(blocks.map(({ block_hash }) => BigInt(block_hash))).toEqual(
        trial.index.blocks.map(({ blockHash }) => blockHash),
      );
    }
  });
});

test('the messages of a stream come in the order of stock', async () => {
  const trial = await startRecovery();
  trial.router.behaviour = 'keep';
  const asked = trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  await eventually(() => trial.router.responses[0]?.messages.length === 5);
  const messages = trial.router.responses[0]?.messages.map(({ header, body }) =>
    body.length > 0 ? body.length : header,
  );
  expect(messages).toEqual([
    '{"subject":"a-subject","stream_type":"response"}',
    '{"error":null}',
    trial.router.responses[0]?.messages[2]?.body.length,
    17,
    '"sentinel"',
  ]);
  expect(trial.holds).toEqual(['begin 0']);
  trial.router.responses[0]?.socket.end();
  await asked;
  await eventually(() => trial.holds.length === 2);
  expect(trial.holds).toEqual(['begin 0', 'end']);
});

test.each(['kill', 'stop'])('a farewell of "%s" ends the stream', async (word) => {
  const trial = await startRecovery();
  trial.router.behaviour = 'keep';
  const asked = trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  await eventually(() => trial.router.responses[0]?.messages.length === 5);
  const head = Buffer.alloc(24);
  head.writeBigUInt64BE(6n);
  trial.router.responses[0]?.socket.write(Buffer.concat([Buffer.from('gossip'), head]));
  trial.router.responses[0]?.socket.write(Buffer.from(`"${word}"`));
  await asked;
  expect(trial.router.responses[0]?.isClosed).toBe(true);
  expect(trial.holds).toEqual(['begin 0', 'end']);
  expect(trial.counts.failedAnswers).toEqual({ unreachable: 0, timeout: 0, closed_early: 0 });
});

test('the answer is taken when it is written, not when it is asked for', async () => {
  const trial = await startRecovery();
  trial.index.store(1);
  let release = (): void => undefined;
  trial.index.prepare = () => new Promise((resolve) => (release = resolve));
  const asked = answer(trial, { start_event_id: 1n });
  await eventually(() => trial.router.responses[0]?.messages.length === 2);
  expect(trial.holds).toEqual([]);
  trial.index.store(1);
  trial.index.prepare = async () => undefined;
  release();
  expect(idsIn((await asked).Events)).toEqual([1, 2]);
  expect(trial.holds[0]).toBe('repair 2');
});

describe('a snapshot that is not possible now', () => {
  test.each([
    [true, { TreeDumpFailed: { last_event_id: 1, message: 'no room' } }],
    [false, { Error: 'worker tree dump failed: no room' }],
  ])('is told in the way the router knows (%s)', async (supports_tree_dump_failed, told) => {
    const trial = await startRecovery();
    trial.index.store(1);
    trial.index.prepare = () => Promise.reject(new Error('no room'));
    expect(await answer(trial, { supports_tree_dump_failed })).toEqual(told);
    expect(trial.errors).toEqual([new Error('no room')]);
    expect(trial.metrics.recoveryQueries.error).toBe(1);
  });

  test('is told in time', async () => {
    const trial = await startRecovery({ service: { snapshotTimeoutMs: 50 } });
    trial.index.prepare = () => new Promise(() => undefined);
    expect(await answer(trial, {})).toMatchObject({ TreeDumpFailed: { last_event_id: 0 } });
  });
});

test('at most 8 dumps are made at a time, ranges beside them, and the rest waits its turn', async () => {
  const trial = await startRecovery({ index: { keptEvents: 1 } });
  trial.index.store(1);
  trial.index.store(1);
  trial.router.behaviour = 'keep';
  const query = { worker_id: WORKER };
  const starts = [null, null, null, null, null, null, null, 1n, 1n, null, 2n];
  for (const start_event_id of starts) {
    void trial.router.ask(trial.port, PATH, { ...query, start_event_id });
  }
  const answered = (): number =>
    trial.router.responses.filter(({ messages }) => messages.length === 5).length;
  expect(await eventually(() => answered() === 9)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(answered()).toBe(9);
  expect(trial.metrics.recoveryQueries).toMatchObject({ tree_dump: 8, events: 1 });
  expect(trial.counts.answersInFlight).toBe(11);
  for (let left = 0; left < starts.length; left++) {
    for (const { socket, messages } of trial.router.responses)
      if (messages.length === 5) socket.end();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(await eventually(() => trial.counts.answersInFlight === 0)).toBe(true);
  expect(trial.metrics.recoveryQueries).toMatchObject({ tree_dump: 10, events: 1 });
});

test('a router that does not read is given up in time, and nobody waits for it', async () => {
  const trial = await startRecovery({ stream: { stallTimeoutMs: 200 } });
  for (let event = 0; event < 200; event++) trial.index.store(2000);
  trial.router.behaviour = 'do not read';
  void trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  await eventually(() => trial.holds.length === 1);
  trial.router.behaviour = 'close';
  expect(await answer(trial, { start_event_id: 200n })).toHaveProperty('Events');
  expect(trial.holds.filter((entry) => entry === 'end')).toHaveLength(1);
  expect(await eventually(() => trial.counts.failedAnswers.timeout === 1)).toBe(true);
  expect(trial.counts.answersInFlight).toBe(0);
  expect(trial.holds.filter((entry) => entry === 'end')).toHaveLength(2);
});

test('a router that is not there costs a counter', async () => {
  const trial = await startRecovery();
  const payload = requestPayload({ address: '127.0.0.1:1' }, { worker_id: WORKER });
  expect(trial.service.accept({ path: PATH, payload })).toBe('');
  expect(await eventually(() => trial.counts.failedAnswers.unreachable === 1)).toBe(true);
  expect(trial.holds).toEqual([]);
});

test('a router that closes while a dump is made gets none, and nothing is held for it', async () => {
  const trial = await startRecovery();
  let release = (): void => undefined;
  trial.index.prepare = () => new Promise((resolve) => (release = resolve));
  void trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  await eventually(() => trial.router.responses[0]?.messages.length === 2);
  trial.router.responses[0]?.socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  release();
  expect(await eventually(() => trial.counts.failedAnswers.closed_early === 1)).toBe(true);
  expect(trial.holds).toEqual([]);
  expect(trial.metrics.recoveryQueries.tree_dump).toBe(0);
});

test('too many queries at a time are refused as overload', async () => {
  const trial = await startRecovery({ service: { maxAnswers: 2 } });
  trial.router.behaviour = 'keep';
  const ask = (): Promise<{ acknowledgement: string }> =>
    trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  void ask();
  void ask();
  await eventually(() => trial.counts.answersInFlight === 2);
  expect((await ask()).acknowledgement).toMatch(/^Server overloaded: /);
  expect(trial.counts.refusedRequests.overloaded).toBe(1);
});

test.each([
  ['an unknown path', 'nowhere', {}, 'unknown_path'],
  ['a response plane over QUIC', PATH, { transport: 'quic-response' }, 'unsupported_transport'],
  ['a name to call back', PATH, { address: 'localhost:80' }, 'malformed_request'],
] as const)('%s is refused as unavailable', async (_, path, control, reason) => {
  const trial = await startRecovery();
  const payload = requestPayload(
    { address: trial.router.address, ...control },
    { worker_id: WORKER },
  );
  expect(trial.service.accept({ path, payload })).toMatch(/^Server unavailable: /);
  expect(trial.counts.refusedRequests[reason]).toBe(1);
  expect(trial.router.responses).toEqual([]);
});

test('a path that is served no longer is refused', async () => {
  const trial = await startRecovery();
  trial.service.remove(PATH);
  const { acknowledgement } = await trial.router.ask(trial.port, PATH, { worker_id: WORKER });
  expect(acknowledgement).toMatch(/^Server unavailable: /);
});
