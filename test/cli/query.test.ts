/** `kvrelay query` as a process: each question, and everything that may be there in place of an answer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RunningWorker } from '../status/running-worker.ts';
import { storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { type HttpStub, jsonAnswer, startHttpStub } from '../support/http-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { CliProcess, temporaryFolder } from './record-process.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const U64_MAX = '18446744073709551615';

const STORED = {
  worker_id: '7',
  storage_tier: 'device',
  residency_domain: 'worker',
  event: {
    event_id: '3',
    dp_rank: 1,
    data: {
      stored: {
        parent_hash: null,
        blocks: [{ block_hash: U64_MAX, tokens_hash: '5', mm_extra_info: null }],
      },
    },
  },
};
const EVENTS = {
  kind: 'events',
  last_event_id: '4',
  events: [STORED, { ...STORED, event: { event_id: '4', dp_rank: 1, data: 'cleared' } }],
};
const MATCH = {
  ranks: [{ dp_rank: 0, blocks: { device: 3, host_pinned: 1, disk: 0, external: 0 } }],
};

function block(index: number): object {
  return {
    worker_id: '7',
    dp_rank: 0,
    storage_tier: 'device',
    parent_hash: index === 0 ? null : String(index),
    block_hash: String(index + 1),
    tokens_hash: U64_MAX,
  };
}

function dumpAnswer(count: number, isWhole = true) {
  return async (response: ServerResponse): Promise<void> => {
    response.writeHead(200, { 'Content-Type': 'application/jsonl' });
    for (let first = 0; first < count; first += 1000) {
      const rows = Array.from({ length: Math.min(1000, count - first) }, (_, offset) =>
        JSON.stringify(block(first + offset)),
      );
      if (!response.write(`${rows.join('\n')}\n`)) await once(response, 'drain').catch(() => null);
    }
    if (isWhole) response.end();
    else setTimeout(() => response.destroy(), 300);
  };
}

function relayStub(): Promise<HttpStub> {
  return startHttpStub({
    '/api/events': jsonAnswer(EVENTS),
    '/api/dump': dumpAnswer(2),
    '/api/match': jsonAnswer(MATCH),
  });
}

async function asked(...args: string[]): Promise<CliProcess & { code: number | null }> {
  const child = new CliProcess(['query', ...args]);
  return Object.assign(child, { code: await child.exitCode() });
}

function lastLog(child: CliProcess): string {
  return String(child.logs.at(-1)?.msg);
}

test('status: of a running relay, as text and as its JSON', async () => {
  const running = await RunningWorker.start(2);
  onTestFinished(() => running.stop());
  await running.send(0, [storeEvent([1, 2])]);
  await running.send(1, [storeEvent([3, 4], null, { medium: 'MOON' })], 2);
  await eventually(() => running.worker.status().ranks[1]?.counters.filtered === 1, 5000);
  const address = new URL(running.url).host;
  const text = await asked('status', '--http', address);
  expect([text.code, text.stderr]).toEqual([0, '']);
  expect(text.lines[0]).toMatch(/^kvrelay \d+\.\d+\.\d+: \w+, safe, up \d+ s$/);
  expect(text.stdout).toMatch(
    /^plane zmq tcp:.*: connected, 0 messages \(0 bytes\) to be confirmed$/m,
  );
  expect(text.stdout).toMatch(/^rank 0: flowing, worker \d+, last event 1$/m);
  expect(text.stdout).toMatch(/events {5}1 in, 0 filtered, 1 published with 2 blocks$/m);
  expect(text.stdout).toMatch(/events {5}1 in, 1 filtered \(unknown_medium 1\), 0 published/m);
  const json = await asked('status', '--json', '--http', address);
  expect(json.code).toBe(0);
  expect(json.results).toHaveLength(1);
  expect(json.results[0]).toMatchObject({ ranks: [{ dp_rank: 0 }, { dp_rank: 1 }] });
});

test('events, dump and match: of a running relay and its index', async () => {
  const running = await RunningWorker.start(1);
  onTestFinished(() => running.stop());
  await running.send(0, [storeEvent([1, 2]), storeEvent([3], 2, { medium: 'CPU' })]);
  await eventually(() => running.worker.status().ranks[0]?.last_event_id === '2', 5000);
  const http = ['--http', new URL(running.url).host];
  const events = await asked('events', '--start', '1', ...http);
  expect(events.code).toBe(0);
  expect(events.lines[0]).toBe('answer kind=events last_event_id=2');
  expect(events.lines[1]).toMatch(
    /^event rank=0 event_id=1 stored hashes=1,2 parent=- tier=device/,
  );
  expect(events.lines[2]).toMatch(/event_id=2 stored hashes=3 parent=2 tier=host_pinned/);
  const dump = await asked('dump', ...http);
  expect(dump.code).toBe(0);
  expect(dump.lines.map((line) => line.replace(/ tokens_hash=.*/, ''))).toEqual([
    'block rank=0 tier=device hash=1 parent=-',
    'block rank=0 tier=device hash=2 parent=1',
    'block rank=0 tier=host_pinned hash=3 parent=2',
  ]);
  const prompt = Array.from({ length: 8 }, (_, index) => 100 + index).join();
  const match = await asked('match', '--tokens', prompt, ...http);
  expect(match.lines).toEqual(['match rank=0 device=2 host_pinned=0 disk=0 external=0']);
  const unknown = await asked('dump', '--rank', '9', ...http);
  expect(unknown.code).toBe(2);
  expect(lastLog(unknown)).toMatch(/refuses \/api\/dump: Give rank, one of 0/);
});

test('without an index, events, dump and match end with exit code 1', async () => {
  const running = await RunningWorker.start(1, '--no-indexer');
  onTestFinished(() => running.stop());
  const http = ['--http', new URL(running.url).host];
  for (const question of [['events'], ['dump'], ['match', '--tokens', '1']]) {
    const child = await asked(...question, ...http);
    expect([child.code, child.stdout]).toEqual([1, '']);
    expect(lastLog(child)).toMatch(/This relay keeps no index; start it without --no-indexer/);
  }
});

test('events: the range that is asked for, a line each', async () => {
  const relay = await relayStub();
  const range = ['--rank', '1', '--start', '3', '--end', U64_MAX];
  const text = await asked('events', ...range, '--http', relay.address);
  expect(text.code).toBe(0);
  expect(text.lines).toEqual([
    'answer kind=events last_event_id=4',
    `event rank=1 event_id=3 stored hashes=${U64_MAX} parent=- tier=device blocks=1 worker=7`,
    'event rank=1 event_id=4 cleared tier=device worker=7',
  ]);
  expect(relay.requests).toEqual([`GET /api/events?rank=1&start=3&end=${U64_MAX}`]);
  const json = await asked('events', '--json', '--http', relay.address);
  expect(json.results).toEqual([EVENTS]);
  expect(relay.requests.at(-1)).toBe('GET /api/events');
});

test('events: page by page, up to the one that was the newest at first', async () => {
  const event = (id: number): object => ({
    ...STORED,
    event: { ...STORED.event, event_id: `${id}` },
  });
  const relay = await startHttpStub({
    '/api/events': (response, url) => {
      const start = Number(url.searchParams.get('start') ?? 1);
      const events = [event(start), event(start + 1)];
      // It publishes on meanwhile.
      const last_event_id = `${5 + start}`;
      response.end(
        JSON.stringify({ kind: 'events', last_event_id, events, next_event_id: `${start + 2}` }),
      );
    },
  });
  const text = await asked('events', '--http', relay.address);
  expect(text.code).toBe(0);
  expect(text.lines[0]).toBe('answer kind=events last_event_id=6');
  expect(text.lines.slice(1).map((line) => /event_id=(\d+)/.exec(line)?.[1])).toEqual([
    '1',
    '2',
    '3',
    '4',
    '5',
    '6',
  ]);
  expect(relay.requests).toEqual([
    'GET /api/events',
    'GET /api/events?start=3&end=6',
    'GET /api/events?start=5&end=6',
  ]);
});

test.each([
  [{ kind: 'tree_dump', last_event_id: '9' }, 'answer kind=tree_dump last_event_id=9'],
  [{ kind: 'too_new', newest_available: '2' }, 'answer kind=too_new newest_available=2'],
])('events: an answer of another kind is a line as well: %j', async (answer, line) => {
  const { address } = await startHttpStub({ '/api/events': jsonAnswer(answer) });
  const text = await asked('events', '--http', address);
  expect([text.code, text.lines]).toEqual([0, [line]]);
});

test('dump: a line a block', async () => {
  const relay = await relayStub();
  const text = await asked('dump', '--rank', '0', '--http', relay.address);
  expect(text.code).toBe(0);
  const common = `tokens_hash=${U64_MAX} worker=7`;
  expect(text.lines).toEqual([
    `block rank=0 tier=device hash=1 parent=- ${common}`,
    `block rank=0 tier=device hash=2 parent=1 ${common}`,
  ]);
  expect(relay.requests).toEqual(['GET /api/dump?rank=0']);
  const json = await asked('dump', '--json', '--http', relay.address);
  expect(json.results).toEqual([block(0), block(1)]);
});

test('match: the prompt of the flags, or of a file', async () => {
  const relay = await relayStub();
  const prompt = ['--tokens', '1,2,4294967295', '--lora-name', 'an adapter'];
  const text = await asked('match', ...prompt, '--http', relay.address);
  expect([text.code, text.lines]).toEqual([
    0,
    ['match rank=0 device=3 host_pinned=1 disk=0 external=0'],
  ]);
  const path = join(temporaryFolder(), 'prompt.json');
  writeFileSync(path, '{"tokens":[1],"cache_salt":"secret"}');
  const json = await asked('match', '--request', path, '--json', '--http', relay.address);
  expect(json.results).toEqual([MATCH]);
  expect(json.stderr).toBe('');
  expect(relay.requests).toEqual([
    'POST /api/match {"tokens":[1,2,4294967295],"lora_name":"an adapter"}',
    'POST /api/match {"tokens":[1],"cache_salt":"secret"}',
  ]);
});

/** A process whose output is only counted, with far less memory than the output has bytes. */
function countedDump(address: string): { ended: Promise<[number, number]>; stop: () => void } {
  const flags = ['query', 'dump', '--json', '--http', address];
  const child = spawn(process.execPath, ['--max-old-space-size=40', PROGRAM, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const ended = once(child, 'close').then(([code]): [number, number] => [code as number, bytes]);
  return { ended, stop: () => void child.stdout.destroy() };
}

test('dump: is not held, however large', async () => {
  const { address } = await startHttpStub({ '/api/dump': dumpAnswer(600_000) });
  const [code, bytes] = await countedDump(address).ended;
  expect(code).toBe(0);
  expect(bytes).toBeGreaterThan(70_000_000);
}, 60_000);

test('ends quietly when whoever reads it leaves', async () => {
  const { address } = await startHttpStub({ '/api/dump': dumpAnswer(1_000_000) });
  const child = spawn(process.execPath, [PROGRAM, 'query', 'dump', '--http', address], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const [code] = await once(child, 'close');
  expect([code, errors]).toEqual([0, '']);
});

describe('without an answer one line says why, with exit code 1', () => {
  test('nobody listens', async () => {
    const port = await freePorts(1);
    const child = await asked('status', '--http', `127.0.0.1:${port}`);
    expect([child.code, child.stdout, child.logs.length]).toEqual([1, '', 1]);
    expect(lastLog(child)).toBe(
      `KVR_QUERY: No relay answers at 127.0.0.1:${port}: nobody listens there. ` +
        'Give the address of a running relay with --http',
    );
  });

  test('an engine listens, or another service that does not speak HTTP', async () => {
    const engine = await EngineStub.start();
    const greeter = createServer((socket) => socket.end('INFO {"server_id":"a broker"}\r\n'));
    greeter.listen(0, '127.0.0.1');
    await once(greeter, 'listening');
    onTestFinished(() => {
      engine.close();
      greeter.close();
    });
    const { port } = greeter.address() as { port: number };
    for (const address of [`127.0.0.1:${port}`, new URL(engine.endpoint).host]) {
      const child = await asked('status', '--http', address, '--timeout-seconds', '2');
      expect(child.code).toBe(1);
      expect(lastLog(child)).toMatch(/does not speak HTTP|closed without an answer/);
    }
  });

  test('another service answers', async () => {
    const { address } = await startHttpStub({
      '/api/events': jsonAnswer({ events: 'soon' }),
      '/api/dump': (response) => void response.end('<html>hello</html>\n'),
    });
    for (const question of ['status', 'events', 'dump']) {
      const child = await asked(question, '--http', address);
      expect([child.code, child.stdout]).toEqual([1, '']);
      expect(lastLog(child)).toMatch(
        new RegExp(`no kvrelay: its /api/${question} has another form.* with --http$`),
      );
    }
  });

  test('a relay without an indexer', async () => {
    const message = 'This relay keeps no index (--no-indexer)';
    const { address } = await startHttpStub({
      '/api/dump': jsonAnswer({ error: 'no_indexer', message }, 404),
    });
    const child = await asked('dump', '--http', address);
    expect(child.code).toBe(1);
    expect(lastLog(child)).toMatch(
      /does not answer \/api\/dump: This relay keeps no index .* index$/,
    );
  });

  test('the relay is silent, or falls silent within its answer', async () => {
    const { address } = await startHttpStub({
      '/api/status': () => undefined,
      '/api/dump': (response) => void response.write(`${JSON.stringify(block(0))}\n`),
    });
    for (const question of ['status', 'dump']) {
      const child = await asked(question, '--http', address, '--timeout-seconds', '0.3');
      expect([child.code, child.lines.length]).toEqual([1, question === 'dump' ? 1 : 0]);
      expect(lastLog(child)).toMatch(/did not answer within 0.3 s/);
    }
  });

  test('the answer breaks off', async () => {
    const { address } = await startHttpStub({ '/api/dump': dumpAnswer(10, false) });
    const child = await asked('dump', '--http', address);
    expect(child.code).toBe(1);
    expect(lastLog(child)).toMatch(/broke off: what was printed is not all of it/);
  });

  test('a signal comes first', async () => {
    const { address } = await startHttpStub({ '/api/status': () => undefined });
    const child = new CliProcess(['query', 'status', '--http', address]);
    setTimeout(() => child.child.kill('SIGTERM'), 1500);
    expect(await child.exitCode()).toBe(1);
    expect(lastLog(child)).toMatch(/signal came before the whole answer/);
  });
});

test('objects: a line each, and the filters go with the question', async () => {
  const held = { source: 'mooncake', backend_id: 'b', tenant_id: 'default' };
  const lines = [
    { ...held, object_key: 'm@1', media: ['cpu', 'disk'] },
    { ...held, object_key: 'two words\u001b', media: ['disk'], group_id: 'g', more: 1 },
  ].map((object) => JSON.stringify(object));
  const { address, requests } = await startHttpStub({
    '/api/objects': (response) => void response.end(`${lines.join('\n')}\n`),
  });
  const filters = [
    '--source',
    'mooncake',
    '--backend',
    'b',
    '--tenant',
    'default',
    '--prefix',
    'm@',
  ];
  const child = await asked('objects', '--http', address, ...filters);
  expect(child.stdout).toBe(
    'object store=mooncake backend=b tenant=default media=cpu,disk key=m@1\n' +
      'object store=mooncake backend=b tenant=default media=disk key="two words\\u001b" group=g\n',
  );
  expect(requests).toEqual([
    'GET /api/objects?source=mooncake&backend=b&tenant=default&prefix=m%40',
  ]);
  const asJson = await asked('objects', '--http', address, '--json');
  expect(asJson.stdout).toBe(`${lines.join('\n')}\n`);
});

describe('bad usage is one line, with exit code 2', () => {
  test.each([
    [[], /QUESTION is missing; allowed: status, events, dump, match or objects/],
    [['dump', '--prefix', 'm'], /--prefix means nothing to dump; allowed: objects/],
    [['state'], /QUESTION 'state' is not possible/],
    [['status', '--rank', '1'], /--rank means nothing to status; allowed: events or dump/],
    [['events', '--start', '5', '--end', '4'], /--end is below --start 5/],
    [['match'], /--tokens is missing/],
    [['match', '--tokens', '1,x'], /--tokens '1,x' is not possible/],
    [['match', '--tokens', '4294967296'], /--tokens '4294967296' is not possible/],
    [['match', '--tokens', '1', '--request', '-'], /--tokens contradicts --request/],
    [['match', '--request', '/nowhere'], /--request '\/nowhere' cannot be read/],
    [['status', '--http', 'off'], /--http is 'off'/],
    [['status', '--http', '127.0.0.1:0'], /--http has port 0/],
    [['status', '--nonsense'], /--nonsense is not a flag/],
  ])('%j', async (args, expected) => {
    const child = await asked(...args);
    expect([child.code, child.stdout, child.logs.length]).toEqual([2, '', 1]);
    expect(lastLog(child)).toMatch(expected);
  });

  test.each([400, 404])('what the relay refuses about the question: %d', async (status) => {
    const { address } = await startHttpStub({
      '/api/dump': jsonAnswer({ error: 'no_such_rank', message: 'There is no rank 9' }, status),
    });
    const child = await asked('dump', '--rank', '9', '--http', address);
    expect(child.code).toBe(2);
    expect(lastLog(child)).toMatch(/refuses \/api\/dump: There is no rank 9/);
  });
});
