/** `kvrelay inspect` at the router's end: what a relay publishes, on a ZMQ plane and on NATS. */
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import {
  type NatsServerProcess,
  natsServerAvailable,
  startNatsServer,
} from '../support/nats-server.ts';
import { RunProcess } from '../support/run-process.ts';
import { CliProcess } from './record-process.ts';

/** A relay of one engine, to this plane. */
async function relayTo(engine: EngineStub, ...plane: readonly string[]): Promise<RunProcess> {
  const flags = ['--worker-id', '7', '--block-size', '4', '--http', '127.0.0.1:0'];
  const relay = new RunProcess(['run', '--engine-endpoint', engine.endpoint, ...flags, ...plane]);
  onTestFinished(async () => void (await relay.stop()));
  await relay.ready();
  await engine.subscribed();
  return relay;
}

async function publish(engine: EngineStub): Promise<void> {
  const events = [storeEvent([101, 2n ** 64n - 1n], 7n), removeEvent([101])];
  await engine.send(batchFrames(batch(events), 0));
  await engine.send(batchFrames(batch([{ type: 'AllBlocksCleared' }]), 1));
}

const PLANE_TEXT = [
  /^plane .*seq=0 rank=0 event_id=1 stored hashes=101,18446744073709551615 parent=7 tier=device blocks=2 worker=7 publisher=\d+$/,
  /^plane .*seq=0 rank=0 event_id=2 removed hashes=101 tier=device blocks=1 worker=7 publisher=\d+$/,
  /^plane .*seq=1 rank=0 event_id=3 cleared tier=device worker=7 publisher=\d+$/,
];

function expectPlaneLines(text: CliProcess, json: CliProcess): void {
  const lines = text.lines;
  expect(lines).toHaveLength(PLANE_TEXT.length);
  for (const [index, line] of lines.entries()) expect(line).toMatch(PLANE_TEXT[index] ?? /^$/);
  expect(json.results[0]).toMatchObject({
    source: 'plane',
    seq: '0',
    rank: 0,
    event_id: '1',
    type: 'stored',
    hashes: ['101', '18446744073709551615'],
    parent: '7',
    tier: 'device',
    worker: '7',
  });
}

test('prints what a ZMQ plane publishes', async () => {
  const engine = await EngineStub.start();
  const relay = await relayTo(engine, '--plane-endpoint', 'tcp://127.0.0.1:0');
  const status = await fetch(`${relay.httpUrl}/api/status`);
  const { plane } = (await status.json()) as { plane: { endpoint: string } };
  const ends = ['--messages', '2'];
  const text = new CliProcess(['inspect', plane.endpoint, ...ends]);
  const json = new CliProcess(['inspect', plane.endpoint, '--json', ...ends]);
  for (const each of [text, json]) await each.logged('connected');
  await delay(200);
  await publish(engine);
  expect([await text.exitCode(), await json.exitCode()]).toEqual([0, 0]);
  expectPlaneLines(text, json);
  engine.close();
});

describe.skipIf(!natsServerAvailable())('NATS', () => {
  let server: NatsServerProcess;
  beforeAll(async () => {
    server = await startNatsServer();
  });
  afterAll(() => server.stop());

  test('prints what a relay publishes, and says what is no message of one', async () => {
    const engine = await EngineStub.start();
    await relayTo(engine, '--event-plane', 'nats', '--nats-server', server.url);
    const text = new CliProcess(['inspect', server.url, '--messages', '2']);
    const subject = 'namespace.dynamo.component.*.endpoint.*.kv-events';
    const json = new CliProcess(['inspect', `${server.url}/${subject}`, '--json', '--follow']);
    for (const each of [text, json]) await each.logged('subscribed');
    await publish(engine);
    expect(await text.exitCode()).toBe(0);
    await json.sees(() => json.results.length === 3);
    expectPlaneLines(text, json);
    const odd = 'namespace.dynamo.component.x.endpoint.y.kv-events';
    const client = await connect({ servers: server.url });
    client.publish(odd, Buffer.from('hello'));
    await client.drain();
    await json.sees(() => json.results.length === 4);
    expect(json.results[3]).toEqual({ source: 'plane', subject: odd, malformed: 'envelope' });
    expect(await json.exitCode('SIGTERM')).toBe(0);
    engine.close();
  });

  test('a server that is not there ends it with exit code 1', async () => {
    const nobody = new CliProcess(['inspect', 'nats://127.0.0.1:1']);
    expect(await nobody.exitCode()).toBe(1);
    expect(nobody.logs).toMatchObject([{ level: 'fatal' }]);
  });
});
