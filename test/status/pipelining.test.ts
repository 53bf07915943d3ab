/** Clients that send requests before they have the answer to the last one. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { StatusServer } from '../../src/status/http-server.ts';
import { FakeStatus } from './fake-status.ts';

interface Started {
  readonly server: StatusServer;
  readonly client: Socket;
  /** Times that the metrics were asked for. */
  readonly asked: { count: number };
}

async function start(): Promise<Started> {
  const asked = { count: 0 };
  const metrics = async (): Promise<string> => {
    asked.count++;
    return 'x'.repeat(1 << 20);
  };
  const rank = {
    dpRank: 0,
    events: () => ({ kind: 'too_new', lastEventId: 0 }) as const,
    dump: async () => ({ count: 0, chunks: [] }),
    match: () => [],
  };
  const server = new StatusServer({
    host: '127.0.0.1',
    port: 0,
    status: new FakeStatus(),
    metrics: { contentType: 'text/plain', metrics },
    index: { indexedRanks: () => [rank] },
    objects: { objects: () => null },
    warner: { warn: () => undefined },
  });
  onTestFinished(() => server.stop());
  const { port, hostname } = new URL((await server.start()).url);
  const client = connect(Number(port), hostname);
  onTestFinished(() => void client.destroy());
  client.on('error', () => undefined);
  await once(client, 'connect');
  return { server, client, asked };
}

function requestOf(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
}

test('of thousands of requests at once only the first is looked at, and the connection ends', async () => {
  const { server, client, asked } = await start();
  client.write(requestOf('/metrics').repeat(3000));
  await expect.poll(() => server.refusedRequests, { timeout: 5000 }).toBeGreaterThan(100);
  client.resume();
  await once(client, 'close');
  expect(asked.count).toBe(1);
}, 20_000);

test('the answer before a refused one goes out whole', async () => {
  const { client } = await start();
  client.write(requestOf('/metrics').repeat(2));
  let answers = '';
  client.on('data', (chunk) => {
    answers += String(chunk);
  });
  await once(client, 'close');
  expect(answers).toMatch(/^HTTP\/1.1 200 OK/);
  expect(answers.split('x'.repeat(1 << 20))[1]).toMatch(/^HTTP\/1.1 503 [\s\S]*pipelined_request/);
}, 20_000);

test('behind a stream, which never ends, no dump is begun', async () => {
  const { server, client } = await start();
  client.resume().write(requestOf('/api/stream') + requestOf('/api/dump'));
  await expect.poll(() => server.refusedRequests, { timeout: 5000 }).toBe(1);
});

test('one connection takes request after request', async () => {
  const { server, client, asked } = await start();
  for (let turn = 1; turn <= 20; turn++) {
    client.write(requestOf('/metrics'));
    let bytes = 0;
    while (bytes < 1 << 20) bytes += ((await once(client, 'data')) as [Buffer])[0].length;
    expect(asked.count).toBe(turn);
  }
  expect(server.refusedRequests).toBe(0);
}, 20_000);
