/** `kvrelay doctor` on engines: each check fails for its cause, and passes without it. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { pythonTupleHash } from '../../src/engines/sglang-legacy.ts';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { servePage, vllmPage } from '../support/engine-page.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { ReplayStub } from '../support/replay-stub.ts';
import { APART, type Diagnosis, diagnose } from './diagnosis.ts';
import { CliProcess } from './record-process.ts';

const DEMO = fileURLToPath(new URL('../../assets/demo.kvrec', import.meta.url));
const TOKEN = 987_654_321;

/** `kvrelay play` as the engine: its two addresses. */
async function playedEngine(...flags: string[]): Promise<{ engine: string; replay: string }> {
  const ports = await freePorts(2);
  const [engine, replay] = [`tcp://127.0.0.1:${ports}`, `tcp://127.0.0.1:${ports + 1}`];
  const addresses = ['--endpoint', engine, '--replay-endpoint', replay];
  const player = new CliProcess(['play', DEMO, ...addresses, '--loop', ...flags]);
  await player.sees(() => player.results.length === 1);
  return { engine, replay };
}

function flagsFor(engine: string, ...flags: string[]): string[] {
  return ['--engine-endpoint', engine, '--block-size', '4', ...APART, ...flags];
}

/** What the doctor finds while an engine publishes these messages over and over. */
async function diagnoseMessages(
  messages: readonly (readonly Buffer[])[],
  ...flags: string[]
): Promise<Diagnosis> {
  const engine = await EngineStub.start();
  const timer = setInterval(() => {
    for (const frames of messages) void engine.send(frames);
  }, 50);
  onTestFinished(() => {
    clearInterval(timer);
    engine.close();
  });
  return diagnose(flagsFor(engine.endpoint, '--seconds', '2', ...flags));
}

function storing(fields: Record<string, unknown> = {}, rank = 0): Buffer[] {
  return batchFrames(batch([storeEvent([1, 2], null, fields)], rank));
}

test('an engine as it should be passes every check of it', async () => {
  const { engine, replay } = await playedEngine();
  const flags = ['--block-size', '16', '--replay-endpoint', replay, ...APART];
  const found = await diagnose(['--engine-endpoint', engine, ...flags]);
  expect(found.code).toBe(0);
  const states = found.checks
    .filter(({ name }) => /^(engine_(?!metrics)|block_size|replay_)/.test(name))
    .map(({ name, state }) => `${name} ${state}`);
  expect(states).toEqual([
    'engine_reachable ok',
    'engine_publisher ok',
    'engine_messages ok',
    'engine_topic ok',
    'engine_events ok',
    'engine_rank ok',
    'engine_filter ok',
    'block_size ok',
    'replay_answer ok',
    'replay_depth ok',
  ]);
  expect(found.of('engine_filter').text).toMatch(/GPU \d+; groups 0 full_attention/);
  expect(found.of('block_size').text).toBe('blocks of 16 tokens come, 16 are configured');
  expect(found.of('replay_answer').text).toBe('it answers, with topics, and marks the end');
  expect(found.of('replay_depth').text).toMatch(/^the engine keeps \d+ batches \(0 to \d+\)$/);
});

test('as text it is the same, a line a check', async () => {
  const { engine, replay } = await playedEngine('--replay-form', 'old');
  const addresses = ['--engine-endpoint', engine, '--replay-endpoint', replay];
  const child = new CliProcess(['doctor', ...addresses, '--block-size', '16', ...APART]);
  expect(await child.exitCode()).toBe(0);
  expect(child.stderr).toBe('');
  expect(child.lines.every((line) => /^(ok|warn|fail|skipped) +[a-z_]+ +\S/.test(line))).toBe(true);
  expect(child.stdout).toMatch(/^ok {7}replay_answer {6}it answers, without topics/m);
});

describe('engine_reachable fails', () => {
  test('where nobody listens; a missing block size is told all the same', async () => {
    const engine = `tcp://127.0.0.1:${await freePorts(1)}`;
    const found = await diagnose(['--engine-endpoint', engine, ...APART]);
    expect(found.of('engine_reachable')).toMatchObject({ state: 'fail' });
    expect(found.of('engine_reachable').text).toBe(`${engine}: nobody listens there`);
    expect(found.of('block_size')).toMatchObject({
      state: 'fail',
      remedy: 'Give --block-size TOKENS',
    });
  });

  test('where another service listens, or an ipc socket is missing', async () => {
    const server = createServer((socket) => socket.write('INFO {"server_id":"some broker"}\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const stranger = await diagnose(flagsFor(`tcp://127.0.0.1:${port}`));
    expect(stranger.of('engine_reachable').text).toMatch(/what listens there is no ZMQ socket$/);
    const missing = await diagnose(flagsFor('ipc:///tmp/kvrelay-nowhere.sock'));
    expect(missing.of('engine_reachable').text).toMatch(/there is no such socket$/);
  });

  test('where it is to be bound and is in use; free, it waits for the engine', async () => {
    const other = await EngineStub.start();
    onTestFinished(() => other.close());
    const taken = await diagnose(flagsFor(other.endpoint, '--engine-bind'));
    expect(taken.of('engine_reachable')).toMatchObject({ state: 'fail' });
    const endpoint = `tcp://127.0.0.1:${await freePorts(1)}`;
    const player = new CliProcess(['play', DEMO, '--endpoint', endpoint, '--connect', '--loop']);
    const flags = ['--engine-endpoint', endpoint, '--engine-bind', '--block-size', '16'];
    const bound = await diagnose([...flags, ...APART]);
    expect(bound.of('engine_reachable').state).toBe('ok');
    expect(bound.of('engine_publisher').state).toBe('ok');
    expect(bound.of('block_size').state).toBe('ok');
    await player.exitCode('SIGINT');
    const alone = await diagnose(flagsFor(endpoint, '--engine-bind', '--seconds', '1'));
    expect(alone.of('engine_publisher')).toMatchObject({ state: 'warn' });
  });
});

test('engine_publisher fails at the replay socket, and replay_answer at the event socket', async () => {
  const { engine, replay } = await playedEngine();
  const swapped = flagsFor(replay, '--replay-endpoint', engine, '--seconds', '2');
  const found = await diagnose(swapped);
  expect(found.of('engine_publisher').text).toMatch(/it is no publisher$/);
  expect(found.of('replay_answer').text).toMatch(/did not answer a replay request$/);
  expect(found.of('replay_depth').state).toBe('skipped');
});

test('engine_messages warns of silence, in bounded time', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const startMs = performance.now();
  const found = await diagnose(flagsFor(engine.endpoint, '--seconds', '1'));
  expect(performance.now() - startMs).toBeLessThan(8000);
  expect(found.code).toBe(0);
  expect(found.of('engine_messages')).toMatchObject({ state: 'warn' });
  expect(found.of('engine_messages').text).toMatch(/^no message within 1\.\d s$/);
  expect(found.of('engine_events').text).toBe('nothing was published');
});

test('engine_topic fails where no topic fits, and names those there are', async () => {
  const [, ...rest] = storing();
  const frames = [Buffer.from('kv@pod\u001b'), ...rest];
  const found = await diagnoseMessages([frames], '--engine-topic', 'kv-events');
  expect(found.of('engine_topic')).toMatchObject({ state: 'fail' });
  expect(found.of('engine_topic').text).toBe(
    'no topic begins with "kv-events"; there are "kv@pod\\u001b"',
  );
  expect(found.output).not.toContain('\u001b');
  const fits = await diagnoseMessages([frames, storing()], '--engine-topic', 'kv@');
  expect(fits.of('engine_topic').text).toBe('topics that begin with "kv@" come; not taken: ""');
});

describe('engine_events', () => {
  test('fails for messages of a plane', async () => {
    const number = Buffer.alloc(8);
    const found = await diagnoseMessages([[Buffer.from('kv-events'), number, number, number]]);
    expect(found.of('engine_events').text).toMatch(/messages of an event plane/);
  });

  test('fails where nothing can be read, and warns where some cannot', async () => {
    const damaged = [Buffer.alloc(0), Buffer.alloc(8), Buffer.from([0x93])];
    const none = await diagnoseMessages([damaged, [Buffer.from('alone')]]);
    expect(none.of('engine_events')).toMatchObject({ state: 'fail' });
    expect(none.of('engine_events').text).toMatch(
      /no message can be read: msgpack \d+, frames \d+/,
    );
    const some = await diagnoseMessages([damaged, storing()]);
    expect(some.of('engine_events')).toMatchObject({ state: 'warn' });
    const unknown = batchFrames(batch([storeEvent([1]), { type: 'Other' }]));
    const dropped = await diagnoseMessages([unknown]);
    expect(dropped.of('engine_events').text).toMatch(
      /^some events cannot be used: unknown_tag \d+$/,
    );
  });

  test('fails for a version that hashes blocks without their position', async () => {
    const blind = storeEvent([pythonTupleHash(tokensFrom(100, 4))]);
    const messages = [batchFrames(batch([blind]))];
    const found = await diagnoseMessages(messages, '--engine', 'sglang');
    expect(found.of('engine_events').text).toMatch(/hashes blocks without their position/);
    expect((await diagnoseMessages(messages)).of('engine_events').state).toBe('ok');
  });
});

test('engine_rank fails for a foreign rank; in strict it passes under ours, and is warned of', async () => {
  const foreign = await diagnoseMessages([storing({}, 3)]);
  expect(foreign.of('engine_rank')).toMatchObject({ state: 'fail' });
  expect(foreign.of('engine_rank').text).toBe('batches of rank 3 are dropped; configured is 0');
  const mixed = await diagnoseMessages([storing({}, 3), storing()]);
  expect(mixed.of('engine_rank').state).toBe('warn');
  const strict = await diagnoseMessages([storing({}, 3)], '--compat', 'strict');
  expect(strict.of('engine_rank').text).toBe('batches of rank 3 pass as rank 0');
  const given = await diagnoseMessages([storing({}, 3)], '--dp-rank', '3');
  expect(given.of('engine_rank').state).toBe('ok');
});

test('several ranks are checked one by one', async () => {
  const ports = await freePorts(2);
  const engine = await EngineStub.start(`tcp://127.0.0.1:${ports + 1}`);
  onTestFinished(() => engine.close());
  const flags = ['--dp-size', '2', '--seconds', '1'];
  const { checks } = await diagnose(flagsFor(`tcp://127.0.0.1:${ports}`, ...flags));
  const reached = checks.filter(({ name }) => name === 'engine_reachable');
  expect(reached.map(({ rank, state }) => [rank, state])).toEqual([
    [0, 'fail'],
    [1, 'ok'],
  ]);
});

test('engine_filter fails where every event is filtered, and says why', async () => {
  const medium = await diagnoseMessages([storing({ medium: 'MOON' })]);
  expect(medium.of('engine_filter').text).toMatch(
    /^every event is filtered: unknown_medium \d+ \(media other \d+\)$/,
  );
  const window = { group_idx: 1, kv_cache_spec_kind: 'sliding_window' };
  const group = await diagnoseMessages([storing(window)]);
  expect(group.of('engine_filter').text).toMatch(
    /filtered: non_main_attention_kind \d+ .*groups 1 sliding_window/,
  );
  const some = await diagnoseMessages([storing({ medium: 'MOON' }), storing()]);
  expect(some.of('engine_filter')).toMatchObject({ state: 'ok' });
});

test('block_size fails where it differs or is not given, and names the one that comes', async () => {
  const stored = storing({ block_size: 8, token_ids: new Array(16).fill(TOKEN) });
  const found = await diagnoseMessages([stored]);
  expect(found.of('block_size')).toMatchObject({
    state: 'fail',
    text: 'blocks of 8 tokens come, but 4 are configured',
  });
  expect(found.of('block_size').remedy).toMatch(/^Give --block-size 8/);
  expect(found.output).not.toMatch(new RegExp(String(TOKEN)));
  const mixed = await diagnoseMessages([stored, storing()]);
  expect(mixed.of('block_size').state).toBe('warn');
  const { engine } = await playedEngine();
  const missing = await diagnose(['--engine-endpoint', engine, ...APART]);
  expect(missing.of('block_size')).toMatchObject({
    state: 'fail',
    text: "it is not given; the engine's blocks have 16 tokens",
    remedy: 'Give --block-size 16',
  });
});

describe('replay', () => {
  async function diagnoseReplay(
    prepare: (stub: ReplayStub) => void,
    ...flags: string[]
  ): Promise<Diagnosis> {
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const replay = `tcp://127.0.0.1:${await freePorts(1)}`;
    prepare(await ReplayStub.start(replay));
    const addresses = ['--replay-endpoint', replay, '--seconds', '2', '--replay-idle-ms', '300'];
    return diagnose(flagsFor(engine.endpoint, ...addresses, ...flags));
  }
  const kept = Array.from({ length: 10 }, (_, sequence) =>
    batchFrames(batch([storeEvent([sequence])]), sequence + 5),
  );

  test('replay_answer fails where nobody listens', async () => {
    const replay = `tcp://127.0.0.1:${await freePorts(1)}`;
    const found = await diagnose(
      flagsFor(replay, '--replay-endpoint', replay.replace(/\d+$/, '1')),
    );
    expect(found.of('replay_answer')).toMatchObject({ state: 'fail' });
  });

  test('replay_answer warns of an answer without its end, and fails for one nobody can read', async () => {
    const broken = await diagnoseReplay((stub) => {
      stub.keep(...kept);
      stub.maxBatches = 4;
    });
    expect(broken.of('replay_answer')).toMatchObject({ state: 'warn' });
    expect(broken.of('replay_answer').text).toMatch(/^the answer broke off after \d batches/);
    const odd = await diagnoseReplay((stub) => {
      stub.rubbish = [[Buffer.from('x')]];
    });
    expect(odd.of('replay_answer').text).toBe('1 messages of the answer cannot be read');
  });

  test('replay_depth says what is kept, and warns where that is nothing', async () => {
    const full = await diagnoseReplay((stub) => stub.keep(...kept));
    expect(full.of('replay_depth')).toMatchObject({
      state: 'ok',
      text: 'the engine keeps 10 batches (5 to 14)',
    });
    const empty = await diagnoseReplay(() => undefined);
    expect(empty.of('replay_depth')).toMatchObject({ state: 'warn' });
    const unused = await diagnoseReplay(() => undefined, '--on-engine-gap', 'count');
    expect(unused.of('replay_answer').state).toBe('skipped');
  });
});

test('engine_metrics fails where the page is missing or tells no load', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const page = (url: string): Promise<Diagnosis> =>
    diagnose(flagsFor(engine.endpoint, '--seconds', '1', '--engine-metrics', url));
  const whole = await servePage((_, response) => void response.end(vllmPage({ 0: 0.5 }, '100')));
  expect((await page(whole)).of('engine_metrics').state).toBe('ok');
  const empty = await servePage((_, response) => void response.end('up 1\n'));
  expect((await page(empty)).of('engine_metrics').text).toMatch(/: missing_series$/);
  const gone = await page(`http://127.0.0.1:${await freePorts(1)}/metrics`);
  expect(gone.of('engine_metrics').text).toMatch(/ECONNREFUSED/);
});
