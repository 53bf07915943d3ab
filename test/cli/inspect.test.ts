/** `kvrelay inspect` as a process: every source it can print, and how it ends. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openMessageFile } from '../../src/cli/recording-source.ts';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { CliProcess, recordingOf, temporaryFolder } from './record-process.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const DEMO = fileURLToPath(new URL('../../assets/demo.kvrec', import.meta.url));

const TOKEN = 987_654_321;
const stream: readonly Buffer[][] = [
  batchFrames(
    batch([
      storeEvent([101, 2n ** 64n - 1n], 7n, {
        token_ids: Array.from({ length: 8 }, () => TOKEN),
        group_idx: 0,
        lora_name: 'an\u001b[31m adapter',
        cache_salt: 'secret-salt',
      }),
      removeEvent([101], { medium: 'CPU\u001b' }),
    ]),
    2n ** 63n,
  ),
  batchFrames(batch([{ type: 'AllBlocksCleared' }, { type: 'Other' }], 1), 1),
  batchFrames(batch([removeEvent([2n ** 63n]), removeEvent([2n ** 64n - 1n])], 1), 1),
  batchFrames(batch([], null), 2),
  [Buffer.alloc(0), Buffer.alloc(8), Buffer.from([0x93])],
  [Buffer.from('alone')],
];

const TEXT = [
  'engine seq=9223372036854775808 rank=0 stored hashes=101,18446744073709551615 parent=7 ' +
    'medium=GPU blocks=2 tokens=8 block_size=4 group=0 lora="an\\u001b[31m adapter" salted=true',
  'engine seq=9223372036854775808 rank=0 removed hashes=101 medium=CPU\\u001b blocks=1',
  'engine seq=1 rank=1 cleared',
  'engine seq=1 rank=1 dropped reason=unknown_tag events=1',
  'engine seq=1 rank=1 removed hashes=9223372036854775808 medium=GPU blocks=1',
  'engine seq=1 rank=1 removed hashes=18446744073709551615 medium=GPU blocks=1',
  'engine seq=2 rank=- empty',
  'engine seq=0 malformed: msgpack bytes=1',
  'engine malformed: frames',
];

const FIRST = {
  source: 'engine',
  seq: '9223372036854775808',
  rank: 0,
  type: 'stored',
  hashes: ['101', '18446744073709551615'],
  parent: '7',
  medium: 'GPU',
  blocks: 2,
  tokens: 8,
  block_size: 4,
  group: 0,
  lora: 'an\u001b[31m adapter',
  salted: true,
};

function fileOf(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.kvrec');
  writeFileSync(path, bytes);
  return path;
}

test('prints a recording, and no token id, salt or control character of it', async () => {
  const path = fileOf(recordingOf(stream));
  const text = new CliProcess(['inspect', path]);
  expect(await text.exitCode()).toBe(0);
  expect(text.lines.map((line) => line.replace(/^\d+\.\d{3} /, ''))).toEqual(TEXT);
  expect(text.lines.at(-1)).toMatch(/^0\.050 /);

  const json = new CliProcess(['inspect', path, '--json']);
  expect(await json.exitCode()).toBe(0);
  expect(json.results[0]).toEqual({ at_ms: 0, ...FIRST });
  expect(json.results.at(-1)).toEqual({ at_ms: 50, source: 'engine', malformed: 'frames' });
  expect(json.results).toHaveLength(TEXT.length);
  for (const output of [text.stdout, text.stderr, json.stdout, json.stderr]) {
    expect(output).not.toMatch(new RegExp(`${TOKEN}|secret-salt|\u001b`));
  }
});

test('prints what an engine publishes, until it has had enough messages', async () => {
  const engine = await EngineStub.start();
  const text = new CliProcess(['inspect', engine.endpoint, '--messages', String(stream.length)]);
  await engine.subscribed();
  for (const frames of stream) await engine.send(frames);
  expect(await text.exitCode()).toBe(0);
  expect(text.lines).toEqual(TEXT);
  engine.close();
});

test('a live source ends after --seconds, or with a signal where it is followed', async () => {
  const nobody = 'tcp://127.0.0.1:1';
  const startMs = performance.now();
  const bounded = new CliProcess(['inspect', nobody, '--seconds', '0.3']);
  expect(await bounded.exitCode()).toBe(0);
  expect(performance.now() - startMs).toBeLessThan(8000);
  const followed = new CliProcess(['inspect', nobody, '--follow']);
  await delay(600);
  expect(followed.child.exitCode).toBeNull();
  expect(await followed.exitCode('SIGINT')).toBe(0);
});

test('follows a recording that still grows', async () => {
  const whole = recordingOf(stream.slice(0, 2), stream.slice(2));
  const first = recordingOf(stream.slice(0, 2));
  const path = fileOf(first);
  const followed = new CliProcess(['inspect', path, '--follow']);
  await followed.sees(() => followed.lines.length === 4);
  // Half a member is no tear while its recorder is at work.
  appendFileSync(path, whole.subarray(first.length, first.length + 20));
  await delay(500);
  appendFileSync(path, whole.subarray(first.length + 20));
  await followed.sees(() => followed.lines.length === TEXT.length);
  expect(await followed.exitCode('SIGTERM')).toBe(0);
  expect(followed.stderr).not.toMatch(/torn/);

  const torn = new CliProcess(['inspect', fileOf(whole.subarray(0, -3))]);
  expect(await torn.exitCode()).toBe(0);
  expect(torn.lines).toHaveLength(4);
  expect(torn.stderr).toMatch(/the file is torn at its end/);
});

test('ends quietly when whoever reads it leaves', async () => {
  const piped = spawn(
    process.execPath,
    [PROGRAM, 'inspect', DEMO, '--follow', '--log-level', 'warn'],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let errors = '';
  piped.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  await once(piped.stdout, 'data');
  piped.stdout.destroy();
  const [code] = await once(piped, 'close');
  expect([code, errors]).toEqual([0, '']);
});

test('a signal and a timer are heard between the members of a file', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const members = Array.from({ length: 8 }, () => stream);
  let messages = 0;
  for await (const _ of openMessageFile(fileOf(recordingOf(...members))).messages({
    onTorn: () => undefined,
  })) {
    messages++;
    const end = performance.now() + 2;
    while (performance.now() < end);
  }
  clearInterval(timer);
  expect(messages).toBe(8 * stream.length);
  expect(turns).toBeGreaterThanOrEqual(3);
});

/** The most memory that an inspecting process of this file has taken, in bytes. */
async function peakBytes(path: string): Promise<number> {
  const reader = new CliProcess(
    ['inspect', path, '--json', '--log-level', 'warn'],
    ['--max-old-space-size=64'],
  );
  let peak = 0;
  const status = `/proc/${reader.child.pid}/status`;
  const timer = setInterval(() => {
    const [, kilobytes] = existsSync(status)
      ? (/VmHWM:\s+(\d+)/.exec(readFileSync(status, 'utf8')) ?? [])
      : [];
    if (kilobytes !== undefined) peak = Math.max(peak, Number(kilobytes) * 1024);
  }, 20);
  expect(await reader.exitCode()).toBe(0);
  clearInterval(timer);
  return peak;
}

/** 96 MiB of messages that cannot be compressed. */
function largeRecording(): Buffer {
  const messages = Array.from({ length: 96 }, () => [Buffer.alloc(0), randomBytes(1 << 20)]);
  return recordingOf(...messages.map((frames) => [frames]));
}

test.skipIf(process.platform !== 'linux')(
  'reads a recording larger than its memory',
  async () => {
    const large = fileOf(largeRecording());
    const smallPeak = await peakBytes(fileOf(recordingOf(stream)));
    const growth = (await peakBytes(large)) - smallPeak;
    // What is given up already may still be there, up to a bound that no file's size changes.
    expect(statSync(large).size).toBeGreaterThan(96_000_000);
    expect(growth).toBeLessThan(64_000_000);
  },
  60_000,
);
