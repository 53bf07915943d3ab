/** Requests to the coordinator behind that somebody would hold up, multiply, or make out to be others. */
import { once } from 'node:events';
import { request as requestHttp } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { bodyOf, wireBatch } from '../../../support/cache-batches.ts';
import { post, startCoordinator as start, stored } from '../../../support/coordinator-endpoint.ts';
import { jsonAnswer, startHttpStub } from '../../../support/http-stub.ts';
import { eventually } from '../../../support/plane-collector.ts';

/** Sends, and reads nothing. */
function deafSocket(url: string, request: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(request);
  return socket;
}

test('an asker that takes no answer holds nobody up', async () => {
  let answerBytes = 64 << 20;
  const stub = await startHttpStub({
    '/events': (response) => void response.end(Buffer.alloc(answerBytes)),
  });
  const { url, source } = await start(`http://${stub.address}`);
  const body = stored(1).toString();
  const head = `POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n`;
  const deaf = deafSocket(url, head + body);
  await eventually(() => stub.requests.length === 1);
  answerBytes = 2;
  const timely = { method: 'POST', body: stored(2), signal: AbortSignal.timeout(10_000) };
  expect((await fetch(`${url}/events`, timely)).status).toBe(200);
  expect(source.counts.forwards.answered).toBe(1);
  deaf.destroy();
  await eventually(() => source.counts.forwards.answered === 2);
});

test('bodies of all requests that wait for an answer are bounded together', async () => {
  const stub = await startHttpStub({ '/quota': () => new Promise<void>(() => undefined) });
  const { url, source } = await start(`http://${stub.address}`, 16 << 20);
  const body = Buffer.alloc(15 << 20, 'x');
  for (let sent = 1; sent <= 6; sent++) {
    const asked = requestHttp(`${url}/quota`, { method: 'PUT', agent: false });
    asked.on('error', () => undefined);
    asked.end(body);
    onTestFinished(() => void asked.destroy());
    await eventually(() => stub.requests.length + source.counts.forwards.overflow === sent);
  }
  expect([stub.requests.length, source.counts.forwards.overflow]).toEqual([4, 2]);
});

test('what comes back here by way of others is known, and ends with an answer', async () => {
  const first = await start('http://127.0.0.1:1');
  const port = Number(new URL(first.url).port);
  await first.source.stop();
  const behind = await start(`http://127.0.0.1:${port}`);
  const { url, source } = await start(behind.url, 1 << 20, port);
  for (const asked of [fetch(`${url}/quota`), post(url, stored(1))]) {
    expect((await asked).status).toBe(508);
  }
  expect([source.counts.requests, source.counts.refusals.loop]).toEqual([4, 2]);
  expect(behind.source.counts.requests).toBe(2);
  expect(source.counts.batches).toMatchObject({ applied: 1, duplicates: 0 });
  const told = source.reading().notices.map(({ message }) => message);
  expect(told.join()).toContain('come back');
});

test('a path goes there as it came, and so does the body of a GET', async () => {
  const stub = await startHttpStub({});
  const { url } = await start(`http://${stub.address}`);
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const head = 'Host: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked';
  socket.end(`GET /a/../b//c?x=%2e HTTP/1.1\r\n${head}\r\n\r\n5\r\nhello\r\n0\r\n\r\n`);
  socket.resume();
  await once(socket, 'close');
  expect(stub.requests).toEqual(['GET /a/../b//c?x=%2e hello']);
});

test('names that no batch could have are handed on, and not followed', async () => {
  const stub = await startHttpStub({ '/instances': jsonAnswer({}) });
  const { url, source } = await start(`http://${stub.address}`);
  for (const id of ['x'.repeat(257), '\ud800']) {
    const body = JSON.stringify({ instance_id: id });
    await fetch(`${url}/instances`, { method: 'POST', body });
  }
  await fetch(`${url}/instances/${'x'.repeat(257)}/heartbeat`, { method: 'PUT' });
  expect(stub.requests).toHaveLength(3);
  expect(source.view.instances.size).toBe(0);
  await fetch(`${url}/instances/${'x'.repeat(256)}/heartbeat`, { method: 'PUT' });
  await post(url, bodyOf(wireBatch(1)));
  expect(source.view.instances.size).toBe(2);
});
