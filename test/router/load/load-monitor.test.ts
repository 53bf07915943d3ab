import type { RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { LOAD_FAULTS, LoadMetrics } from '../../../src/metrics/load-metrics.ts';
import type { PlaneMessage } from '../../../src/protocol/envelope.ts';
import { LoadEventEncoder } from '../../../src/protocol/load-event.ts';
import { LoadMonitor } from '../../../src/router/load/load-monitor.ts';
import { MAX_PAGE_BYTES } from '../../../src/router/load/scrape.ts';
import { servePage, vllmPage } from '../../support/engine-page.ts';
import { eventually } from '../../support/plane-collector.ts';

const GOOD = vllmPage({ 0: 0.25 }, '400');

interface Watched {
  readonly metrics: LoadMetrics;
  readonly sent: PlaneMessage[];
  /** Causes and fields of the warnings asked for, bounded or not. */
  readonly warnings: string[];
}

function watch(url: string, timeoutMs = 1000): Watched {
  const watched: Watched = { metrics: new LoadMetrics(), sent: [], warnings: [] };
  const monitor = new LoadMonitor(
    {
      url,
      engine: 'vllm',
      dpRank: 0,
      dpSize: 1,
      blockSize: 16,
      encoder: new LoadEventEncoder(7n, 9),
      send: (message) => watched.sent.push(message),
      warner: {
        warn: (cause, fields) => watched.warnings.push(`${cause} ${JSON.stringify(fields)}`),
      },
      everyMs: 5,
      timeoutMs,
    },
    watched.metrics,
  );
  monitor.start();
  onTestFinished(() => monitor.stop());
  return watched;
}

const text =
  (body: string): RequestListener =>
  (_, response) => {
    response.end(body);
  };

test.each<[string, string, RequestListener]>([
  ['status', 'an error page', (_, response) => response.writeHead(500).end(GOOD)],
  ['status', 'a redirect', (_, response) => response.writeHead(302, { location: '/' }).end()],
  ['missing_series', 'an empty page', text('')],
  ['bad_value', 'a lie', text(vllmPage({ 0: 2 }, '400'))],
  ['too_many_lines', 'endless lines', text('\n'.repeat(200_000))],
  ['too_large', 'a huge page', text(`${GOOD}${'#'.repeat(MAX_PAGE_BYTES)}`)],
  [
    'too_large',
    'a page without an end',
    (_, response) => {
      const timer = setInterval(() => response.write('#'.repeat(1 << 20)), 1);
      response.on('close', () => clearInterval(timer));
    },
  ],
  ['unreachable', 'a link that breaks', (request) => request.socket.destroy()],
  [
    'unreachable',
    'another protocol',
    ({ socket }) =>
      void socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ),
  ],
  ['unreachable', 'something that is not HTTP', (request) => request.socket.end('\0\0\0')],
])('%s: %s is counted and warned of, and nothing is told', async (fault, _, answer) => {
  const { metrics, sent, warnings } = watch(await servePage(answer));
  await eventually(() => metrics.scrapes >= 3);
  expect(metrics.faults[fault as 'status']).toBeGreaterThanOrEqual(3);
  expect(LOAD_FAULTS.filter((one) => metrics.faults[one] > 0)).toEqual([fault]);
  expect(warnings[0]).toContain(`engine_metrics_${fault} `);
  expect([sent, metrics.publishedMessages, [...metrics.kvUsedBlocks]]).toEqual([[], 0, []]);
});

test.each<[string, RequestListener]>([
  ['no answer', () => undefined],
  ['a head alone', (_, response) => response.writeHead(200).flushHeaders()],
  [
    'a drop now and then',
    (_, response) => {
      const timer = setInterval(() => response.write('#'), 10);
      response.on('close', () => clearInterval(timer));
    },
  ],
])('timeout: %s', async (_, answer) => {
  const { metrics } = watch(await servePage(answer), 60);
  await eventually(() => metrics.scrapes >= 2);
  expect(metrics.faults.timeout).toBeGreaterThanOrEqual(2);
});

test('nobody there, then a page, then another value, then no page any more', async () => {
  let answer: RequestListener = (_, response) => response.writeHead(503).end();
  const { metrics, sent } = watch(await servePage((...call) => answer(...call)));
  await eventually(() => metrics.faults.status > 0);
  answer = text(GOOD);
  await eventually(() => sent.length === 1);
  expect([...metrics.kvUsedBlocks]).toEqual([[0, 100]]);
  const { scrapes } = metrics;
  await eventually(() => metrics.scrapes > scrapes + 3);
  expect(sent).toHaveLength(1);
  answer = text(vllmPage({ 0: 0.5 }, '400'));
  await eventually(() => sent.length === 2);
  answer = (_, response) => response.writeHead(503).end();
  await eventually(() => metrics.kvUsedBlocks.size === 0);
  expect([sent.length, metrics.publishedMessages]).toEqual([2, 2]);
});

test("no warning repeats the page's text", async () => {
  const { metrics, warnings } = watch(await servePage(text(vllmPage({ 0: 'hunter2' }, 'hunter2'))));
  await eventually(() => metrics.scrapes > 0);
  expect(warnings.join()).not.toContain('hunter2');
});

test('a stop does not wait for a page that never comes', async () => {
  const { metrics } = watch(await servePage(() => undefined), 60_000);
  expect(metrics.scrapes).toBe(0);
});
