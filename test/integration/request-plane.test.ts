/** The request plane of a whole worker: where it listens, what it shows, and when it does not start. */
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { RecoveryListenError } from '../../src/router/recovery/request-server.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { RouterClient } from '../support/fake-router.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { requestFrame } from '../support/router-requests.ts';
import { configOf } from '../support/worker-config.ts';

const logger = createLogger({ level: 'silent', format: 'json' });

function createOne(flags: readonly string[], settings: object = {}): Worker {
  const own = [
    '--block-size',
    '4',
    '--plane-endpoint',
    'tcp://127.0.0.1:0',
    '--http',
    '127.0.0.1:0',
  ];
  const config = { ...configOf(...own, ...flags), ...settings };
  const worker = createWorker(config, { logger });
  onTestFinished(() => worker.stop());
  return worker;
}

test('routers are answered on loopback, and what they ask is in metrics and status', async () => {
  const worker = createOne([]);
  await worker.start();
  const { recovery } = worker.status();
  expect(recovery).toMatchObject({ request_plane: 'tcp', clients: 0, answers_in_flight: 0 });
  const [host, port] = (recovery?.endpoint ?? '').split(':');
  expect(host).toBe('127.0.0.1');

  const client = await RouterClient.connect(Number(port));
  client.send(requestFrame('nowhere', Buffer.alloc(0)));
  await client.acknowledged(1);
  expect(client.acknowledgements).toEqual(['Server unavailable: nothing is served at this path']);
  expect(worker.status().recovery?.clients).toBe(1);
  const samples = parseExposition(await (await fetch(`${worker.httpUrl}/metrics`)).text());
  const value = (name: string, labels: object): number | undefined =>
    samples.find((sample) => sample.name === name && matches(sample.labels, labels))?.value;
  const refused = 'kvrelay_recovery_refused_requests_total';
  expect(value(refused, { reason: 'unknown_path' })).toBe(1);
  expect(value(refused, { reason: 'overloaded' })).toBe(0);
  expect(value('kvrelay_recovery_clients', {})).toBe(1);
  expect(value('kvrelay_recovery_queries_total', { answer: 'tree_dump' })).toBe(0);
  expect(value('kvrelay_output_hold_seconds_count', {})).toBe(0);
  await worker.stop();
  expect(await eventually(() => client.isClosed)).toBe(true);
});

function matches(labels: Readonly<Record<string, string>>, wanted: object): boolean {
  return Object.entries(wanted).every(([label, value]) => labels[label] === value);
}

test.each([
  ['with --request-plane none', ['--request-plane', 'none']],
  ['without an index', ['--no-indexer']],
])('%s nothing listens', async (_, flags) => {
  const worker = createOne(flags);
  await worker.start();
  expect(worker.status().recovery).toBeNull();
});

test('an address of the host is advertised, and listened for everywhere', async () => {
  const worker = createOne([], { tcpRpcHost: '192.0.2.7' });
  await worker.start();
  const endpoint = worker.status().recovery?.endpoint ?? '';
  expect(endpoint).toMatch(/^192\.0\.2\.7:\d+$/);
  (await RouterClient.connect(Number(endpoint.split(':')[1]))).close();
});

test('a port that is taken ends the start with the setting that helps', async () => {
  const port = await freePorts(1);
  const other = createServer().listen(port, '127.0.0.1');
  onTestFinished(() => void other.close());
  const worker = createOne([], { tcpRpcPort: port });
  const start = worker.start();
  await expect(start).rejects.toThrow(RecoveryListenError);
  await expect(start).rejects.toThrow(String(port));
});
