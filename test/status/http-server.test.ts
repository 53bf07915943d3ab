import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Script } from 'node:vm';
import { afterEach, expect, test, vi } from 'vitest';
import { errorLine, HttpListenError } from '../../src/errors.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import {
  StatusServer,
  type StatusServerLimits,
  type StatusServerOptions,
} from '../../src/status/http-server.ts';
import type { RankStatus, StatusSnapshot } from '../../src/status/status-source.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { relay, sourceOf } from '../metrics/fake-source.ts';
import { FakeStatus, rankStatus, snapshot } from './fake-status.ts';

const relays = [relay(0)];
const registry = createRegistry(sourceOf(relays));

const open: StatusServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.stop()));
});

interface Started {
  readonly server: StatusServer;
  readonly status: FakeStatus;
  readonly url: string;
  readonly warnings: string[];
}

async function start(
  limits: Partial<StatusServerLimits> = {},
  options: Partial<StatusServerOptions> = {},
): Promise<Started> {
  const status = new FakeStatus();
  const warnings: string[] = [];
  const server = new StatusServer({
    host: '127.0.0.1',
    port: 0,
    status,
    metrics: registry,
    index: { indexedRanks: () => [] },
    objects: { objects: () => null },
    warner: { warn: (cause) => warnings.push(cause) },
    limits,
    ...options,
  });
  open.push(server);
  const { url } = await server.start();
  return { server, status, url, warnings };
}

interface RawAnswer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** For what fetch does not let a caller choose. */
async function raw(url: string, path: string, headers: Record<string, string>): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/[[\]]/g, '');
  const sent = request({ host, port, path, headers, agent: false });
  sent.end();
  const [response] = await once(sent, 'response');
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return { statusCode: response.statusCode, headers: response.headers, body };
}

async function jsonOf<Body = Record<string, unknown>>(response: Response): Promise<Body> {
  return (await response.json()) as Body;
}

async function firstEvents(response: Response, count: number): Promise<unknown[]> {
  const events: unknown[] = [];
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.startsWith('data: ')) events.push(JSON.parse(block.slice(6)));
    }
    if (events.length >= count) return events;
  }
  throw new Error(`The stream ended after ${events.length} events`);
}

test('GET /api/status is the snapshot as JSON, with u64 as exact decimal strings', async () => {
  const { url, status } = await start();
  const response = await fetch(`${url}/api/status`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const text = await response.text();
  expect(text).toContain('"worker_id":"18446744073709551615"');
  expect(JSON.parse(text)).toEqual(status.snapshot);
});

test('GET /api/status has the keys of the interface, no more and no fewer', async () => {
  const { url } = await start();
  const body = await jsonOf<StatusSnapshot>(await fetch(`${url}/api/status`));
  expect(Object.keys(body)).toEqual(
    'version started_at uptime_s compat state settings plane recovery ranks worker_load sources lmcache lmcache_coordinator objects'.split(
      ' ',
    ),
  );
  expect(Object.keys(body.plane)).toEqual(
    'kind connected endpoint outbox_bytes outbox_messages'.split(' '),
  );
  const rank = body.ranks[0] as RankStatus;
  expect(Object.keys(rank).join(' ')).toBe(
    'dp_rank worker_id publisher_id plane_endpoint state degraded engine counters ' +
      'filtered_by_reason latency_ms queues blocks last_event_id block_size',
  );
  expect(Object.keys(rank.engine)).toEqual(
    'endpoint connected last_seq emitted_seq last_batch_age_ms replay'.split(' '),
  );
});

test('a bigint that slips into a snapshot is written as text instead of failing', async () => {
  const { url, status } = await start();
  const settings = { workerId: (2n ** 64n - 1n) as unknown as string };
  status.snapshot = snapshot({ settings });
  const body = await jsonOf<StatusSnapshot>(await fetch(`${url}/api/status`));
  expect(body.settings).toEqual({ workerId: '18446744073709551615' });
});

test('GET /metrics is an exposition that parses line by line', async () => {
  const { url } = await start();
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const samples = parseExposition(await response.text());
  expect(samples.some(({ name }) => name === 'kvrelay_engine_batches_total')).toBe(true);
});

test('GET /health/live is 503 only while something is stuck', async () => {
  const { url, status } = await start();
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  status.isLive = false;
  const response = await fetch(`${url}/health/live`);
  expect([response.status, await response.json()]).toEqual([503, { live: false }]);
});

test('GET /health/ready is 503 with what it waits for, then 200', async () => {
  const { url, status } = await start();
  status.readiness = { ready: false, waitingFor: ['event plane'] };
  const early = await fetch(`${url}/health/ready`);
  expect(early.status).toBe(503);
  expect(await early.json()).toMatchObject({ ready: false, waiting_for: ['event plane'] });
  status.readiness = { ready: true, waitingFor: [] };
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
});

test('GET /health/ready stays 200 while degraded and says why; ?strict=1 answers 503', async () => {
  const { url, status } = await start();
  expect((await fetch(`${url}/health/ready?strict=1`)).status).toBe(200);
  status.degrade();
  const lenient = await fetch(`${url}/health/ready`);
  expect(lenient.status).toBe(200);
  expect((await jsonOf(lenient)).degraded).toMatchObject([{ dp_rank: 3, code: 'engine_gap' }]);
  expect((await fetch(`${url}/health/ready?strict=1`)).status).toBe(503);
  expect((await fetch(`${url}/health/ready?strict=0`)).status).toBe(200);
});

test('GET /api/stream sends the status at once and again each interval', async () => {
  const { url, status } = await start({ streamIntervalMs: 30 });
  const response = await fetch(`${url}/api/stream`);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(await firstEvents(response, 2)).toEqual([status.snapshot, status.snapshot]);
});

test('streams are bounded: a further client is told to poll until a place is free', async () => {
  const { url } = await start({ maxStreamClients: 1, streamIntervalMs: 10 });
  const first = new AbortController();
  await fetch(`${url}/api/stream`, { signal: first.signal });
  const refused = await fetch(`${url}/api/stream`);
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('30');
  expect((await jsonOf(refused)).error).toBe('too_many_streams');
  first.abort();
  await vi.waitFor(async () => {
    const again = await fetch(`${url}/api/stream`);
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });
});

test('a stream client that does not read is dropped', async () => {
  const { url, status } = await start({ maxStreamClients: 1, streamIntervalMs: 2 });
  status.snapshot = snapshot({ settings: { engine: 'x'.repeat(4_000_000) } });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const closed = once(socket, 'close');
  socket.pause();
  socket.write('GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await vi.waitFor(async () => expect((await fetch(`${url}/api/stream`)).status).toBe(503));
  await vi.waitFor(
    async () => {
      status.snapshot = snapshot();
      const again = await fetch(`${url}/api/stream`);
      expect(again.status).toBe(200);
      await again.body?.cancel();
    },
    { timeout: 5000 },
  );
  socket.on('error', () => {});
  socket.resume();
  await closed;
});

test('a status that throws costs one answer or the open streams, and a warning', async () => {
  const { url, status, warnings } = await start({ streamIntervalMs: 10 });
  const stream = await fetch(`${url}/api/stream`);
  status.status = () => {
    throw new Error('secret detail');
  };
  const response = await fetch(`${url}/api/status`);
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('secret detail');
  await expect(firstEvents(stream, 1000)).rejects.toThrow('The stream ended');
  expect(new Set(warnings)).toEqual(new Set(['http_failure']));
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
});

test.each(['/nothing', '//', '/api', '/api/status/', '/../etc/passwd', '/constructor', '/%00'])(
  '%s is a 404 in JSON',
  async (path) => {
    const { url } = await start();
    const { statusCode, headers, body } = await raw(url, path, {});
    expect([statusCode, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(JSON.parse(body).error).toBe('not_found');
  },
);

test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  '%s is a 405 that names what is allowed',
  async (method) => {
    const { url } = await start();
    const response = await fetch(`${url}/api/status`, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await jsonOf(response)).error).toBe('method_not_allowed');
  },
);

test.each(['/', '/metrics', '/health/live', '/health/ready', '/api/status', '/api/stream'])(
  'HEAD %s has the headers of GET and no body',
  async (path) => {
    const { url } = await start();
    const head = await fetch(url + path, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    const get = new AbortController();
    const { headers } = await fetch(url + path, { signal: get.signal });
    expect(head.headers.get('content-type')).toBe(headers.get('content-type'));
    get.abort();
  },
);

test('no answer may be sniffed, framed, cached or read by another origin', async () => {
  const { url } = await start();
  for (const path of ['/', '/metrics', '/api/status', '/nothing']) {
    const { headers } = await fetch(url + path, { headers: { Origin: 'https://example.com' } });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
});

test('the page is self-contained, and its policy allows only its script and style', async () => {
  const { url } = await start();
  const response = await fetch(url);
  const html = await response.text();
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const policy = response.headers.get('content-security-policy') ?? '';
  for (const tag of ['script', 'style']) {
    const inline = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(html)?.[1] ?? '';
    const hash = createHash('sha256').update(inline).digest('base64');
    expect(policy).toContain(`${tag}-src 'sha256-${hash}'`);
  }
  expect(html.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:\/\/|src=|@import/);
  expect(html).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|\sstyle=|\son\w+=/);
  const script = /<script>([\s\S]*?)<\/script>/.exec(html)?.[1] ?? '';
  expect(() => new Script(script)).not.toThrow();
});

test.each(['localhost', 'LOCALHOST:1', '127.0.0.1', '127.0.0.1:9464', '[::1]', '[::1]:80'])(
  'a loopback server answers Host %s',
  async (host) => {
    const { url } = await start();
    expect((await raw(url, '/health/live', { host })).statusCode).toBe(200);
  },
);

test.each([
  'evil.example',
  'evil.example:9464',
  'localhost.evil.example',
  '127.0.0.1.nip.io',
  '::1',
])('a loopback server refuses Host "%s", which DNS rebinding would send', async (host) => {
  const { url } = await start();
  const { statusCode, body } = await raw(url, '/api/status', { host });
  expect([statusCode, JSON.parse(body).error]).toEqual([403, 'host_not_allowed']);
});

test('a server bound to the wildcard answers any Host', async () => {
  const { url } = await start({}, { host: '0.0.0.0' });
  const answer = await raw(url.replace('0.0.0.0', '127.0.0.1'), '/health/live', {
    host: 'worker-7',
  });
  expect(answer.statusCode).toBe(200);
});

test.each(['::1', '[::1]'])('IPv6 host %s is bound, and bracketed in the URL', async (host) => {
  const { url } = await start({}, { host });
  expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
});

test('an address in use is a typed error that names --http and the remedy', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const failure = await start({}, { port }).catch((error: unknown) => error);
  other.close();
  expect(failure).toBeInstanceOf(HttpListenError);
  expect(failure).toMatchObject({
    code: 'KVR_HTTP_LISTEN',
    message: `Cannot serve HTTP on 127.0.0.1:${port}: the address is in use`,
  });
  expect(errorLine(failure)).toContain('--http HOST:PORT');
});

test('an address this host does not have is told apart from one in use', async () => {
  const failure = await start({}, { host: '192.0.2.1', port: 9464 }).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({
    message: 'Cannot serve HTTP on 192.0.2.1:9464: this host has no such address',
  });
});

test('headers beyond the bound are refused', async () => {
  const { url } = await start({ maxHeaderBytes: 2048 });
  expect((await raw(url, '/', { 'x-long': 'a'.repeat(3000) })).statusCode).toBe(431);
});

test('a request that never ends is cut off', async () => {
  const { url } = await start({ requestTimeoutMs: 50 });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n');
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toContain('408');
  socket.destroy();
});

test('connections beyond the bound are refused and counted', async () => {
  const { url, server, warnings } = await start({ maxConnections: 1 });
  const port = Number(new URL(url).port);
  const first = connect(port, '127.0.0.1');
  await once(first, 'connect');
  const second = connect(port, '127.0.0.1');
  await once(second, 'close');
  expect(server.refusedConnections).toBe(1);
  expect(warnings).toEqual(['http_connections']);
  first.destroy();
});

test('stop() ends streams, idle and silent connections at once, and may be repeated', async () => {
  const { url, server } = await start({ stopGraceMs: 50 });
  const stream = await fetch(`${url}/api/stream`);
  await (await fetch(`${url}/api/status`)).text();
  const silent = connect(Number(new URL(url).port), '127.0.0.1');
  await once(silent, 'connect');
  const startedMs = performance.now();
  await server.stop();
  await server.stop();
  expect(performance.now() - startedMs).toBeLessThan(1000);
  await stream.text();
  await expect(fetch(`${url}/api/status`)).rejects.toThrow('fetch failed');
});

test('the answer keeps its size whatever is held: 64 ranks stay below 100 KB', async () => {
  const { url, status } = await start();
  const ranks = Array.from({ length: 64 }, (_, dpRank) => rankStatus(dpRank));
  status.snapshot = snapshot({ ranks });
  expect((await (await fetch(`${url}/api/status`)).text()).length).toBeLessThan(100_000);
});
