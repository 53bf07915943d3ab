/** Trials of the index over HTTP: exact hashes, pages of events, dumps beside live traffic, prompts. */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { A, B, C, f, message, Rm, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';
import { configOf } from '../support/worker-config.ts';

const LARGEST = 2n ** 64n - 1n;

interface Rig {
  readonly url: string;
  readonly worker: Worker;
  /** Sends payloads and waits until the relay has taken them. */
  readonly send: (...payloads: readonly Buffer[]) => Promise<void>;
}

async function start(...flags: readonly string[]): Promise<Rig> {
  const engine = await EngineStub.start();
  const rig = ['--engine-endpoint', engine.endpoint, '--block-size', '4', '--event-plane', 'none'];
  const worker = createWorker(configOf(...rig, '--http', '127.0.0.1:0', ...flags), {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
  onTestFinished(async () => {
    await worker.stop();
    engine.close();
  });
  await worker.start();
  await engine.subscribed();
  let sequence = 0;
  const batches = (): number =>
    worker.status().ranks.reduce((sum, { engine: { last_seq } }) => {
      return Math.max(sum, last_seq === null ? 0 : Number(last_seq) + 1);
    }, 0);
  return {
    url: worker.httpUrl ?? '',
    worker,
    send: async (...payloads) => {
      for (const payload of payloads) await engine.send(message(sequence++, payload));
      await eventually(() => batches() === sequence);
    },
  };
}

function payload(...events: readonly Parameters<typeof f>[1][number][]): Buffer {
  return f(0, events)[2] as Buffer;
}

async function json(url: string, init?: RequestInit): Promise<Record<string, unknown>> {
  return (await (await fetch(url, init)).json()) as Record<string, unknown>;
}

interface Row {
  readonly parent_hash: string | null;
  readonly block_hash: string;
  readonly storage_tier: string;
}

async function dump(url: string): Promise<Row[]> {
  const response = await fetch(`${url}/api/dump`);
  expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
  const lines = (await response.text()).split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Row);
}

async function match(url: string, prompt: unknown): Promise<Response> {
  return await fetch(`${url}/api/match`, { method: 'POST', body: JSON.stringify(prompt) });
}

test('H8: the largest hash stands exactly in events, dump and status', async () => {
  const { url, send } = await start('--worker-id', '18446744073709551615');
  await send(payload(St(LARGEST, { tokens: A })));
  for (const path of ['/api/events?start=1', '/api/dump', '/api/status']) {
    const response = await fetch(url + path);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('"18446744073709551615"');
  }
  expect(await json(`${url}/api/events?start=1`)).toEqual({
    kind: 'events',
    last_event_id: '1',
    events: [
      {
        worker_id: '18446744073709551615',
        storage_tier: 'device',
        residency_domain: 'worker',
        event: {
          event_id: '1',
          data: {
            stored: {
              parent_hash: null,
              start_position: null,
              blocks: [
                {
                  block_hash: '18446744073709551615',
                  tokens_hash: '14643705804678351452',
                  mm_extra_info: null,
                },
              ],
            },
          },
          dp_rank: 0,
        },
      },
    ],
    next_event_id: null,
  });
});

test('/api/events says where a page ends, and what cannot be had', async () => {
  const { url, send } = await start('--event-buffer', '1500');
  // Each event apart, for each is a root.
  const roots = Array.from({ length: 2000 }, (_, index) => payload(St(index + 1)));
  await send(...roots);
  const page = await json(`${url}/api/events?start=501`);
  expect(page.events).toHaveLength(1000);
  expect([page.kind, page.last_event_id, page.next_event_id]).toEqual(['events', '2000', '1501']);
  const rest = await json(`${url}/api/events?start=1501&end=1600`);
  expect(rest.events).toHaveLength(100);
  expect(rest.next_event_id).toBeNull();
  const kinds = { '': 'tree_dump', '?start=500': 'tree_dump', '?start=2001': 'too_new' };
  for (const [query, kind] of Object.entries({ ...kinds, '?start=9&end=3': 'invalid_range' })) {
    expect(await json(`${url}/api/events${query}`)).toMatchObject({ kind, last_event_id: '2000' });
  }
});

test.each([
  ['/api/events?start=-1', 400, 'bad_event_id'],
  ['/api/events?start=x', 400, 'bad_event_id'],
  ['/api/events?end=123456789012345678901', 400, 'bad_event_id'],
  ['/api/events?rank=1', 404, 'no_such_rank'],
  ['/api/events?rank=', 404, 'no_such_rank'],
  ['/api/dump?rank=7', 404, 'no_such_rank'],
])('%s is refused with %d %s', async (path, status, error) => {
  const { url } = await start();
  const response = await fetch(url + path);
  expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([
    status,
    error,
  ]);
});

test('without an index the three paths are 404', async () => {
  const { url } = await start('--no-indexer');
  const answers = [
    await fetch(`${url}/api/events?start=1`),
    await fetch(`${url}/api/dump`),
    await match(url, { tokens: A }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
});

test('/api/dump has a line a block, the device tier with parents first', async () => {
  const { url, send } = await start();
  await send(
    payload(St([1, 2, 3])),
    payload(St([4], { parent: 2 })),
    payload(St([9], { parent: 8, medium: 'CPU' })),
    payload(Rm(3)),
  );
  const rows = await dump(url);
  expect(rows.map((row) => `${row.storage_tier} ${row.parent_hash} ${row.block_hash}`)).toEqual([
    'device null 1',
    'device 1 2',
    'device 2 4',
    'host_pinned 8 9',
  ]);
  const head = await fetch(`${url}/api/dump`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
});

test('/api/match counts a prompt from its start, each tier after the one above', async () => {
  const { url, send } = await start();
  await send(
    payload(St([1, 2], { tokens: [...A, ...B] })),
    payload(St([3], { parent: 2, tokens: [...C], medium: 'CPU' })),
  );
  const prompt = { tokens: [...A, ...B, ...C, 13] };
  const blocks = { device: 2, host_pinned: 1, disk: 0, external: 0 };
  expect(await (await match(url, prompt)).json()).toEqual({ ranks: [{ dp_rank: 0, blocks }] });
  const other = await (await match(url, { ...prompt, lora_name: 'x' })).json();
  expect(other).toEqual({
    ranks: [{ dp_rank: 0, blocks: { ...blocks, device: 0, host_pinned: 0 } }],
  });
});

test.each([
  ['no JSON', '{', 400],
  ['no object', '[1]', 400],
  ['no tokens', '{}', 400],
  ['a token that is none', '{"tokens":[4294967296]}', 400],
  ['too many tokens', JSON.stringify({ tokens: new Array(262_145).fill(1) }), 400],
  ['a long name', JSON.stringify({ tokens: [1], lora_name: 'x'.repeat(1025) }), 400],
  ['images without end', JSON.stringify({ tokens: [1], mm: [new Array(65).fill('1')] }), 400],
  ['an image that is none', '{"tokens":[1],"mm":[["18446744073709551616"]]}', 400],
  ['too many bytes', ' '.repeat((2 << 20) + 1), 413],
])('/api/match refuses a body with %s', async (_, body, status) => {
  const { url } = await start();
  const answer = await fetch(`${url}/api/match`, { method: 'POST', body }).catch(() => null);
  // A client that is still sending may find the connection closed.
  if (status === 400 || answer !== null) expect(answer?.status).toBe(status);
  const after = await match(url, { tokens: A });
  expect(after.status).toBe(200);
});

test('/api/match answers POST only', async () => {
  const { url } = await start();
  const response = await fetch(`${url}/api/match`);
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
});

test('M7: a dump of many blocks is whole while events go on, one at a time', {
  timeout: 60_000,
  retry: 2,
}, async () => {
  const blocks = scaled(100_000, 500_000);
  const { url, worker, send } = await start();
  const chains = Array.from({ length: blocks / 500 }, (_, index) =>
    payload(St(Array.from({ length: 500 }, (__, block) => index * 500 + block + 1))),
  );
  await send(...chains);
  let isOver = false;
  let stored = 0;
  const live = async (): Promise<void> => {
    while (!isOver) await send(payload(St(1_000_000 + stored++)));
  };
  const traffic = live();
  const startMs = performance.now();
  const first = fetch(`${url}/api/dump`);
  const response = await first;
  expect(performance.now() - startMs).toBeLessThan(1000);
  const second = await fetch(`${url}/api/dump`);
  expect(second.status).toBe(503);
  const lines = (await response.text()).split('\n').slice(0, -1);
  const seconds = (performance.now() - startMs) / 1000;
  isOver = true;
  await traffic;
  const hashes = new Set(lines.map((line) => (JSON.parse(line) as Row).block_hash));
  for (let hash = 1; hash <= blocks; hash++) if (!hashes.has(`${hash}`)) expect.fail(`no ${hash}`);
  expect(seconds).toBeLessThan(20);
  expect(stored).toBeGreaterThan(10);
  expect(worker.status().ranks[0]?.blocks.device).toBe(blocks + stored);
});
