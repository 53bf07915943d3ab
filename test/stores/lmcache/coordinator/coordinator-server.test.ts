/** The endpoint that LMCache's MP servers take for their coordinator: answers, refusals, the one behind. */
import { once } from 'node:events';
import { request as requestHttp } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpListenError } from '../../../../src/errors.ts';
import { CoordinatorSource } from '../../../../src/stores/lmcache/coordinator/coordinator-source.ts';
import { ObjectState } from '../../../../src/stores/objects/object-state.ts';
import { bodyOf, wireBatch, wireEntry } from '../../../support/cache-batches.ts';
import {
  JSON_TYPE,
  post,
  startCoordinator as start,
  stored,
} from '../../../support/coordinator-endpoint.ts';
import { type HttpStub, jsonAnswer, startHttpStub } from '../../../support/http-stub.ts';
import { eventually } from '../../../support/plane-collector.ts';

/** `status body`, the body as JSON where it has one. */
async function shown(answer: Response | Promise<Response>): Promise<[number, unknown]> {
  const response = await answer;
  const text = await response.text();
  return [response.status, text === '' ? null : JSON.parse(text)];
}

describe('alone', () => {
  test('it answers posts as the coordinator does', async () => {
    const { url, state, source } = await start();
    const both = bodyOf(wireBatch(1), wireBatch(2, { entries: [wireEntry('a')] }));
    expect(await shown(post(url, both))).toEqual([200, { applied: 2, duplicates: 0, stale: 0 }]);
    expect(await shown(post(url, both))).toEqual([200, { applied: 0, duplicates: 2, stale: 0 }]);
    const old = bodyOf(wireBatch(3, { incarnation: 1 }));
    expect(await shown(post(url, old))).toEqual([200, { applied: 0, duplicates: 0, stale: 1 }]);
    expect(await shown(post(url, '{}'))).toEqual([200, { applied: 0, duplicates: 0, stale: 0 }]);
    expect(state.objectCount).toBe(1);
    expect(source.metrics).toMatchObject({ messages: 4 });
  });

  test('a body that is none is answered with where it is wrong, and the stream goes on', async () => {
    const { url, source, state } = await start();
    const [status, answer] = await shown(post(url, bodyOf(wireBatch(1), wireBatch(0))));
    expect(status).toBe(422);
    expect(answer).toMatchObject({ detail: [{ loc: ['body', 'batches', '1', 'seq'] }] });
    expect((await shown(post(url, 'no json')))[0]).toBe(422);
    expect((await shown(post(url, '[['.repeat(10))))[0]).toBe(413);
    expect(source.metrics.malformed).toMatchObject({ batch_shape: 1, json: 1, oversize: 1 });
    expect(source.counts.refusals.invalid).toBe(3);
    // Its first batch is in no state: the number behind it shows the gap.
    expect((await shown(post(url, stored(1))))[0]).toBe(200);
    expect((await shown(post(url, stored(3))))[0]).toBe(200);
    expect([source.metrics.lostMessages, state.objectCount]).toEqual([1, 1]);
  });

  test('a server registers, is listed, sends heartbeats, and leaves with what it holds', async () => {
    const { url, state } = await start();
    const at = (path: string, method: string, body?: object) =>
      shown(
        fetch(`${url}${path}`, {
          method,
          ...(body && { body: JSON.stringify(body), headers: JSON_TYPE }),
        }),
      );
    expect(await at('/healthz', 'GET')).toEqual([200, { status: 'healthy' }]);
    expect(await at('/instances/mp-1/heartbeat', 'PUT')).toEqual([
      404,
      { error: 'unknown instance mp-1; re-register' },
    ]);
    const me = { instance_id: ' mp-1 ', ip: '10.0.0.1', http_port: 8000, mq_port: 5555 };
    const known = (re_registered: boolean) => [200, { instance_id: 'mp-1', re_registered }];
    expect(await at('/instances', 'POST', me)).toEqual(known(false));
    expect(await at('/instances', 'POST', me)).toEqual(known(true));
    expect(await at('/instances/mp-1/heartbeat', 'PUT')).toEqual([200, { instance_id: 'mp-1' }]);
    const [, list] = await at('/instances', 'GET');
    expect(list).toEqual({
      instances: [
        {
          ...me,
          instance_id: 'mp-1',
          metadata: {},
          p2p_advertised_url: '',
          registration_time: expect.any(Number),
        },
      ],
    });
    const [, made] = await at('/instances', 'POST', { ip: 'h', http_port: 1 });
    expect(made).toEqual({
      instance_id: expect.stringMatching(/^mp-[0-9a-f]{32}$/),
      re_registered: false,
    });
    await post(url, stored(1));
    expect(state.objectCount).toBe(1);
    expect(await at('/instances/mp-1', 'DELETE')).toEqual([204, null]);
    expect(state.objectCount).toBe(0);
    expect((await at('/instances/mp-1/heartbeat', 'PUT'))[0]).toBe(404);
    expect((await at('/instances', 'POST', { ip: '', http_port: 1 }))[0]).toBe(422);
  });

  test.each([
    ['GET', '/events', 405],
    ['POST', '/healthz', 405],
    ['PUT', '/instances/%zz/heartbeat', 404],
    ['GET', '/instances/mp-1', 405],
    ['POST', '/directory/lookup', 404],
    ['GET', '//', 404],
  ])('%s %s is answered with %i', async (method, path, status) => {
    const { url, source } = await start();
    expect((await fetch(`${url}${path}`, { method })).status).toBe(status);
    const { unknown_path, method: methods } = source.counts.refusals;
    expect([unknown_path, methods]).toEqual(status === 404 ? [1, 0] : [0, 1]);
  });
});

describe('bounds', () => {
  test('a body above the bound is refused unread, by length or by what comes', async () => {
    const { url, source } = await start(null, 65_536);
    const large = Buffer.alloc(65_537, ' ');
    expect((await post(url, large)).status).toBe(413);
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(large);
        controller.close();
      },
    });
    const sent = fetch(`${url}/events`, {
      method: 'POST',
      body: chunked,
      duplex: 'half',
    } as RequestInit);
    expect((await sent).status).toBe(413);
    expect(source.metrics.malformed.oversize).toBe(2);
    expect(source.counts.refusals.oversize).toBe(2);
    expect((await post(url, stored(1))).status).toBe(200);
  });

  const begin = (url: string, sent: string): Socket => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    socket.write(`POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\n${sent}`);
    return socket;
  };

  test('bodies under way are bounded together; one that breaks off gives its room back', async () => {
    const { url, source } = await start(null, 65_536);
    const most = `Content-Length: 65536\r\n\r\n${' '.repeat(65_500)}`;
    const held = Array.from({ length: 4 }, () => begin(url, most));
    const more = `Content-Length: 65536\r\n\r\n${' '.repeat(1000)}`;
    const answers: string[] = [];
    // Those of the four that have not been read yet may be the ones that find no room.
    for (const socket of [...held, begin(url, more)]) {
      socket.on('data', (answer) => answers.push(answer.toString().slice(0, 12)));
    }
    await eventually(() => answers.length > 0);
    expect([answers, source.counts.refusals.busy]).toEqual([['HTTP/1.1 503'], 1]);
    for (const socket of held) socket.destroy();
    await eventually(() => source.counts.refusals.incomplete === 4);
    expect((await post(url, stored(1))).status).toBe(200);
  });

  test('a body that is still coming when it is too much is answered too', async () => {
    const { url } = await start(null, 65_536);
    const socket = begin(url, `Transfer-Encoding: chunked\r\n\r\n20000\r\n${' '.repeat(131_000)}`);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
  });

  test.each(['Content-Length: 65536', 'Transfer-Encoding: chunked'])(
    'bodies that do not come, %s, keep nobody out',
    async (header) => {
      const { url, source } = await start(null, 65_536);
      for (let count = 0; count < 8; count++) begin(url, `${header}\r\n\r\n`);
      await eventually(() => source.counts.requests === 8);
      expect((await post(url, stored(1))).status).toBe(200);
    },
  );

  test('what a browser sends for a web site is refused', async () => {
    const { url, source, state } = await start();
    const asSite = { ...JSON_TYPE, Origin: 'http://evil.example' };
    expect((await post(url, stored(1), asSite)).status).toBe(403);
    const asked = requestHttp(`${url}/instances`, { headers: { Host: 'evil.example' } });
    const [answer] = await once(asked.end(), 'response');
    expect(answer.statusCode).toBe(403);
    expect(source.counts.refusals).toMatchObject({ origin: 1, host: 1 });
    expect(state.objectCount).toBe(0);
  });

  test('an address that is taken is a listen error that names its flag', async () => {
    const { url } = await start();
    const second = new CoordinatorSource({
      host: '127.0.0.1',
      port: Number(new URL(url).port),
      forward: null,
      maxBodyBytes: 65_536,
      maxHolders: 1,
      instanceTimeoutSeconds: 30,
      state: new ObjectState({
        maxObjects: 1,
        maxKeyBytes: 1,
        maxScopes: 1,
        maxAttributeSets: 1,
        onChange: () => undefined,
      }),
      reach: null,
      warner: { warn: () => undefined },
    });
    const failure = await Promise.resolve(second.start()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(HttpListenError);
    expect((failure as HttpListenError).remedy).toContain('--lmcache-coordinator-listen HOST:PORT');
    await second.stop();
  });
});

/** What is answered to a request that no client library sends; '' where the connection ends. */
async function raw(url: string, request: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.end(request);
  const chunks = await socket.toArray().catch(() => []);
  return Buffer.concat(chunks).toString().split('\r\n')[0] ?? '';
}

test('what registered servers say of themselves is bounded together, and given back', async () => {
  const { url } = await start();
  const register = async (id: string): Promise<number> => {
    const metadata = Object.fromEntries(
      Array.from({ length: 60 }, (_, key) => [`${key}`, 'x'.repeat(1000)]),
    );
    const body = JSON.stringify({ instance_id: id, ip: 'h', http_port: 1, metadata });
    return (await fetch(`${url}/instances`, { method: 'POST', body })).status;
  };
  const answers: number[] = [];
  for (let at = 0; at < 20; at++) answers.push(await register(`mp-${at}`));
  expect(answers).toEqual(Array.from({ length: 20 }, (_, at) => (at < 17 ? 200 : 503)));
  expect(await register('mp-3')).toBe(200);
  await fetch(`${url}/instances/mp-3`, { method: 'DELETE' });
  expect(await register('mp-20')).toBe(200);
  const list = await (await fetch(`${url}/instances`)).text();
  expect(list.length).toBeLessThan(1_100_000);
});

test.each(['\ud800', 'x'.repeat(257)])('nobody registers as %j', async (id) => {
  const { url, source } = await start();
  const body = JSON.stringify({ instance_id: id, ip: 'h', http_port: 1 });
  expect((await fetch(`${url}/instances`, { method: 'POST', body })).status).toBe(422);
  expect(source.view.instances.size).toBe(0);
});

describe('requests that no server sends', () => {
  const host = 'Host: 127.0.0.1\r\nConnection: close\r\n';
  test.each([
    ['an address for a path', `GET http://evil.example/ HTTP/1.1\r\n${host}\r\n`],
    ['a star', `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
    ['a post to an address', `POST http://a/events HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n{}`],
    ['a tunnel', `CONNECT evil.example:80 HTTP/1.1\r\n${host}\r\n`],
    [
      'an upgrade',
      `GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`,
    ],
    ['a length that is none', `POST /events HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`],
    ['less than it says', `POST /events HTTP/1.1\r\n${host}Content-Length: 50\r\n\r\n{}`],
    ['a name with half an escape', `PUT /instances/%/heartbeat HTTP/1.1\r\n${host}\r\n`],
  ])('%s is no harm, with a coordinator behind or without', async (_, request) => {
    const stub = await startHttpStub({ '/events': jsonAnswer({}) });
    for (const forward of [null, `http://${stub.address}`]) {
      const { url } = await start(forward);
      const line = await raw(url, request);
      expect(line).toMatch(/^$| 4\d\d /);
      expect((await post(url, stored(1))).status).toBe(200);
    }
    expect(stub.requests.filter((one) => one.startsWith('POST'))).toHaveLength(1);
  });
});

describe('with a coordinator behind', () => {
  const behind = (stub: HttpStub): string => `http://${stub.address}`;
  const answers = (value: object, status = 200) => jsonAnswer(value, status);

  test('everything goes there as it came, and its answer comes back', async () => {
    const stub = await startHttpStub({
      '/events': answers({ applied: 7, more: true }),
      '/quota': answers({ quota: 1 }, 418),
    });
    const { url, state, source } = await start(behind(stub));
    expect(await shown(post(url, stored(1)))).toEqual([200, { applied: 7, more: true }]);
    const quota = fetch(`${url}/quota?x=%20y`, { method: 'PATCH', body: 'abc' });
    expect(await shown(quota)).toEqual([418, { quota: 1 }]);
    expect((await fetch(`${url}/nothing`)).status).toBe(404);
    expect(stub.requests).toEqual([
      `POST /events ${stored(1).toString()}`,
      'PATCH /quota?x=%20y abc',
      'GET /nothing',
    ]);
    expect(state.objectCount).toBe(1);
    expect(source.counts.forwards.answered).toBe(3);
  });

  test('who registers there may come in an older life here', async () => {
    const stub = await startHttpStub({ '/events': answers({}), '/instances': answers({}) });
    const { url, state, source } = await start(behind(stub));
    await post(url, stored(1));
    const older = bodyOf(wireBatch(1, { incarnation: 5, entries: [wireEntry('old')] }));
    await post(url, older);
    expect(source.counts.batches.stale).toBe(1);
    const me = { instance_id: ' mp-1', ip: 'h', http_port: 1 };
    for (const body of [JSON.stringify(me), '[]', '{"instance_id":7}', 'no json']) {
      expect((await fetch(`${url}/instances`, { method: 'POST', body })).status).toBe(200);
    }
    await post(url, older);
    expect([source.counts.batches.applied, state.objectCount]).toEqual([2, 1]);
    expect(source.view.instances.size).toBe(1);
  });

  test('what is not understood here goes there too', async () => {
    const stub = await startHttpStub({ '/events': answers({}) });
    const { url, source } = await start(behind(stub), 65_536);
    const future = '{"batches":[{"event_type":"future"}]}';
    expect((await post(url, future)).status).toBe(200);
    const large = JSON.stringify({ batches: [], pad: 'x'.repeat(100_000) });
    expect((await post(url, large)).status).toBe(200);
    expect(stub.requests).toEqual([`POST /events ${future}`, `POST /events ${large}`]);
    expect(source.metrics.malformed).toMatchObject({ batch_shape: 1, oversize: 1 });
  });

  test('where there is none the asker sees no answer, and the batch is taken all the same', async () => {
    const { url, state, source } = await start('http://127.0.0.1:1');
    await expect(post(url, stored(1))).rejects.toThrow('fetch failed');
    await expect(fetch(`${url}/instances/mp-1/heartbeat`, { method: 'PUT' })).rejects.toThrow(
      'fetch failed',
    );
    expect(state.objectCount).toBe(1);
    expect(source.counts.forwards.unreachable).toBe(2);
    expect(source.view.instances.find('mp-1')?.isMember).toBe(true);
    expect(
      source
        .reading()
        .notices.map(({ message }) => message)
        .join(),
    ).toContain('behind');
  });

  test('a slow one keeps the asker waiting, gets every post in its order, and knows who has left', async () => {
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const stub = await startHttpStub({
      '/events': async (response) => {
        await gate;
        response.end('{}');
      },
      '/instances/mp-1': (response) => void response.writeHead(204).end(),
      '/healthz': answers({ status: 'healthy' }),
    });
    const { url, state } = await start(behind(stub));
    for (const seq of [1, 2]) {
      const impatience = new AbortController();
      const sent = { method: 'POST', headers: JSON_TYPE, body: stored(seq) };
      const asked = fetch(`${url}/events`, { ...sent, signal: impatience.signal });
      expect(await eventually(() => state.objectCount === seq)).toBe(true);
      impatience.abort();
      await expect(asked).rejects.toThrow('aborted');
    }
    const leaving = fetch(`${url}/instances/mp-1`, { method: 'DELETE' });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(stub.requests).toEqual([`POST /events ${stored(1).toString()}`, 'GET /healthz']);
    open();
    expect((await leaving).status).toBe(204);
    expect(stub.requests).toEqual([
      `POST /events ${stored(1).toString()}`,
      'GET /healthz',
      `POST /events ${stored(2).toString()}`,
      'DELETE /instances/mp-1',
    ]);
    expect(state.objectCount).toBe(0);
  });

  test('a stop ends what is under way', async () => {
    const stub = await startHttpStub({ '/events': () => new Promise<void>(() => undefined) });
    const { url, source } = await start(behind(stub));
    const posts = [1, 2].map((seq) => post(url, stored(seq)).catch(() => 'ended'));
    await eventually(() => stub.requests.length === 1);
    await source.stop();
    expect(await Promise.all(posts)).toEqual(['ended', 'ended']);
    expect(stub.requests).toHaveLength(1);
  });
});
