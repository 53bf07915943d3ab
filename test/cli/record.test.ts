/** `kvrelay record` as a process: what it saves is what a relay would have got. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';
import { eventsOf } from '../support/published-events.ts';
import { RunProcess } from '../support/run-process.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';
import { CliProcess, messagesIn, temporaryFolder } from './record-process.ts';

const DEMO = fileURLToPath(new URL('../../assets/demo.kvrec', import.meta.url));

/** A recorder that is connected to this engine. */
async function recorderOf(
  engine: EngineStub,
  out: string,
  ...flags: readonly string[]
): Promise<CliProcess> {
  const args = ['record', '--out', out, '--engine-endpoint', engine.endpoint];
  const recorder = new CliProcess([...args, ...flags]);
  await recorder.logged('engine connected');
  await engine.subscribed();
  return recorder;
}

/** A relay at this address, be the engine there or not, and what it publishes. */
async function relayOf(endpoint: string): Promise<{ relay: RunProcess; router: ZmqCollector }> {
  const addresses = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
  // `strict`: messages do not depend on how many batches come at a time.
  const identity = ['--worker-id', '7', '--block-size', '16', '--compat', 'strict'];
  const relay = new RunProcess(['run', '--engine-endpoint', endpoint, ...addresses, ...identity]);
  await eventually(() => relay.httpUrl !== '');
  const { plane } = (await (await fetch(`${relay.httpUrl}/api/status`)).json()) as {
    plane: { endpoint: string };
  };
  const router = new ZmqCollector(plane.endpoint);
  onTestFinished(() => router.close());
  await router.subscribed();
  return { relay, router };
}

test('a recorded stream that is played again is relayed to the same bytes', async () => {
  const path = join(temporaryFolder(), 'engine.kvrec');
  const engine = await EngineStub.start();
  const original = await relayOf(engine.endpoint);
  await original.relay.ready();
  const recorder = await recorderOf(engine, path, '--batches', '300');
  await delay(200);
  for (const { frames } of messagesIn(DEMO).messages.slice(0, 300)) await engine.send(frames);
  expect(await recorder.exitCode()).toBe(0);
  engine.close();
  expect(await original.relay.stop()).toBe(0);
  const { messages, tornTail } = messagesIn(path);
  expect([messages.length, tornTail]).toEqual([300, null]);

  const endpoint = `tcp://127.0.0.1:${await freePorts(1)}`;
  const again = await relayOf(endpoint);
  const player = new CliProcess(['play', path, '--endpoint', endpoint, '--wait']);
  expect(await player.exitCode()).toBe(0);
  expect(await again.relay.stop()).toBe(0);
  const expected = original.router.published.map(({ payload }) => payload.toString('hex'));
  expect(expected.length).toBeGreaterThan(200);
  expect(again.router.published.map(({ payload }) => payload.toString('hex'))).toEqual(expected);
});

const TOKEN = 987_654_321;
const planted = {
  token_ids: Array.from({ length: 8 }, (_, index) => TOKEN + index),
  lora_name: 'planted-adapter',
  cache_salt: 'planted-salt',
  session_id: 'planted-session',
  extra_keys: [['planted-extra', ['planted-image', 1]], null],
  lookahead_token_ids: [[TOKEN], [TOKEN]],
  medium: 'planted-medium',
  'planted-key': 'planted-value',
};
const plantedTail = ['planted-adapter', [['planted-extra'], null], 0, 'full_attention', null];

/** Batches of every form, each planted with what must not be in a shared file. */
const plantedBatches: readonly unknown[] = [
  batch([storeEvent([101, 2n ** 64n - 1n], null, { ...planted, medium: 'GPU', group_idx: 0 })]),
  batch([['BlockStored', [103], 101, [TOKEN, 1, 2, 3], 4, 5, 'GPU', ...plantedTail]]),
  batch([
    [
      'BlockStored',
      [104],
      101,
      [
        [TOKEN, 1],
        [1, 2],
        [2, 3],
        [3, TOKEN],
      ],
      4,
    ],
  ]),
  batch([
    ['BlockStored', [105], null, [TOKEN, 1, 2, 3], 4, null, 'GPU', { cache_salt: 'planted' }],
  ]),
  batch([storeEvent([106, 107], null, { ...planted })]),
  batch([removeEvent([101], { 'planted-key': TOKEN })]),
  batch([['BlockRemoved', [Buffer.alloc(32, 7)], 'GPU']]),
  batch([{ type: 'PlantedEvent', token_ids: [TOKEN] }, ['PlantedEvent', TOKEN, 'planted'], TOKEN]),
  [1.5, [], 0, 'planted'],
  'planted',
];

function blocksOf(messages: readonly (readonly Uint8Array[])[]): unknown[] {
  const relay = new InProcessRelay(pipelineConfigOf(PLAIN_SETTINGS, 'safe'));
  for (const frames of messages) relay.push(frames);
  const events = relay.published.flatMap(({ payload }) => eventsOf(payload));
  return events.map(({ kind, tier, parent, hashes }) => ({ kind, tier, parent, hashes }));
}

test('a redacted recording relays the same blocks and holds nothing that users wrote', async () => {
  const path = join(temporaryFolder(), 'redacted.kvrec');
  const engine = await EngineStub.start();
  const count = plantedBatches.length + 2;
  const recorder = await recorderOf(engine, path, '--redact', '--batches', String(count));
  const sent = plantedBatches.map((payload, index) => {
    const [, number, bytes] = batchFrames(payload, index);
    return [Buffer.from('planted-topic'), number as Buffer, bytes as Buffer];
  });
  sent.push(
    [Buffer.from('planted-frame')],
    [Buffer.alloc(0), Buffer.from('planted'), Buffer.alloc(0)],
  );
  for (const frames of sent) await engine.send(frames);
  expect(await recorder.exitCode()).toBe(0);
  engine.close();
  expect(recorder.stderr).not.toMatch(/holds token ids/);
  expect(recorder.stdout).toMatch(/redacted\n/);

  const { messages } = messagesIn(path);
  expect(messages.length).toBe(count);
  const recorded = messages.map(({ frames }) => frames);
  const bytes = Buffer.concat([readFileSync(path), ...recorded.flat()]);
  expect(bytes.toString('latin1').toLowerCase()).not.toContain('planted');
  for (let index = 0; index < 8; index++) {
    const token = Buffer.alloc(4);
    token.writeUInt32BE(TOKEN + index);
    expect(bytes.includes(token)).toBe(false);
  }
  const blocks = blocksOf(recorded);
  expect(blocks).toEqual(blocksOf(sent));
  expect(blocks.length).toBeGreaterThanOrEqual(5);
});

test('the file is for its owner alone, is said to hold token ids, and is not overwritten', async () => {
  const path = join(temporaryFolder(), 'own.kvrec');
  const engine = await EngineStub.start();
  const recorder = await recorderOf(engine, path);
  await engine.send(batchFrames(batch([storeEvent([101])]), 3));
  await engine.send(batchFrames(batch([storeEvent([102])]), 5));
  await engine.send([Buffer.from('half')]);
  // A member is written each second: what kills the process now costs nothing.
  await recorder.sees(() => messagesIn(path).messages.length === 3);
  expect(await recorder.exitCode('SIGINT')).toBe(0);
  expect(recorder.stdout).toMatch(/^recorded 3 messages of \d+ bytes in 0\.\d s:\n/);
  expect(recorder.stdout).toMatch(/missing {2}1 by their numbers, 1 malformed/);
  expect(recorder.stderr.match(/the file holds token ids/g)).toHaveLength(1);
  expect(statSync(path).mode & 0o777).toBe(0o600);

  const before = readFileSync(path);
  const second = new CliProcess(['record', '--out', path]);
  expect(await second.exitCode()).toBe(2);
  expect(second.stderr).toMatch(/--out '.*' is there already/);
  expect(readFileSync(path)).toEqual(before);

  writeFileSync(path, 'x', { mode: 0o644 });
  const forced = ['record', '--out', path, '--force', '--seconds', '0.2'];
  const third = new CliProcess([...forced, '--engine-endpoint', engine.endpoint]);
  expect(await third.exitCode()).toBe(0);
  expect(messagesIn(path)).toEqual({ messages: [], tornTail: null });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  engine.close();
});

test('a recorder that is killed leaves what it had a second ago', async () => {
  const path = join(temporaryFolder(), 'killed.kvrec');
  const engine = await EngineStub.start();
  const recorder = await recorderOf(engine, path);
  for (let number = 0; number < 20; number++) {
    await engine.send(batchFrames(batch([storeEvent([100 + number])]), number));
  }
  await delay(1500);
  await engine.send(batchFrames(batch([storeEvent([200])]), 20));
  await recorder.exitCode('SIGKILL');
  engine.close();
  expect(messagesIn(path).messages.length).toBeGreaterThanOrEqual(20);
});

test('an address that cannot be bound ends it, and leaves no file', async () => {
  const path = join(temporaryFolder(), 'unbound.kvrec');
  const bound = ['--engine-bind', '--engine-endpoint', 'tcp://192.0.2.1:5557'];
  const recorder = new CliProcess(['record', '--out', path, ...bound]);
  expect(await recorder.exitCode()).toBe(1);
  expect(recorder.stderr).toMatch(/KVR_ENGINE_BIND: .*tcp:\/\/192.0.2.1:5557/);
  expect(() => statSync(path)).toThrow(/ENOENT/);
});

test.each([
  [['record'], /--out is missing/],
  [['record', '--out'], /--out has no value/],
  [['record', '--out', '/'], /--out '\/' (cannot be written|is there already)/],
  [['record', '--out', 'x', '--batches', '0'], /--batches '0' is not possible/],
  [['record', '--out', 'x', '--seconds', '1e3'], /--seconds '1e3' is not possible/],
  [['record', '--out', 'x', '--engine-endpoint', '5557'], /--engine-endpoint '5557'/],
  [['record', '--out', 'x', '--frob'], /--frob is not a flag; allowed: the flags kvrelay record/],
  [['record', '--out', 'x', 'y'], /argument 'y' belongs to no flag/],
  [['record', '--out', 'x', '--redact', '--redact'], /--redact is given twice/],
  [['play'], /FILE is missing/],
  [['play', 'nowhere'], /FILE 'nowhere' cannot be read/],
  [['play', DEMO, '--rate', '-1'], /--rate '-1' is not possible/],
  [['play', DEMO, '--drop', '1.5'], /--drop '1.5' is not possible/],
  [
    ['play', DEMO, '--endpoint', 'tcp://127.0.0.1:70000'],
    /--endpoint .* allowed: ports 0 to 65535/,
  ],
  [['play', DEMO, '--replay-form', 'newer'], /--replay-form 'newer' .* allowed: old or new/],
  [['inspect'], /is missing/],
  [['inspect', 'tcp://nowhere'], /argument 'tcp:\/\/nowhere' is not possible/],
  [['inspect', 'nats://user:secret@host'], /argument 'nats:\/\/\*\*\*@host'/],
  [['inspect', 'nats://host/a b'], /argument/],
  [['inspect', DEMO, '--messages'], /--messages has no value/],
])('%j ends with one line and exit code 2', async (args, report) => {
  const refused = new CliProcess(args);
  expect(await refused.exitCode()).toBe(2);
  expect(refused.stdout).toBe('');
  expect(refused.stderr.trim().split('\n')).toHaveLength(1);
  expect(refused.stderr).toMatch(report);
});

test.each(['record', 'play', 'inspect'])('kvrelay %s --help lists its flags', async (command) => {
  const shown = new CliProcess([command, '--help']);
  expect(await shown.exitCode()).toBe(0);
  expect(shown.stderr).toBe('');
  expect(shown.stdout).toMatch(new RegExp(`^Usage: kvrelay ${command} `));
  for (const line of shown.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(101);
});
