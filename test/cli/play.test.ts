/** `kvrelay play` as a process: an engine to whoever listens, and to whoever asks for replays. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { unpack } from 'msgpackr';
import { expect, onTestFinished, test } from 'vitest';
import { Dealer, Subscriber } from 'zeromq';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { ZmqCollector } from '../support/plane-collector.ts';
import { CliProcess, recordingOf, temporaryFolder } from './record-process.ts';

const TRACE = fileURLToPath(new URL('../vectors/dynamo/trace-512.bin.gz', import.meta.url));
const END = 'ffffffffffffffff';

/** Batches with their own topic; the numbers are those that a player has to give anew. */
function batches(count: number): Buffer[][] {
  return Array.from({ length: count }, (_, index) => {
    const [, number, payload] = batchFrames(batch([storeEvent([100 + index])], 3), 500 + index);
    return [Buffer.from('kv'), number as Buffer, payload as Buffer];
  });
}

function fileOf(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.kvrec');
  writeFileSync(path, bytes);
  return path;
}

class Played {
  readonly process: CliProcess;

  private constructor(args: readonly string[]) {
    this.process = new CliProcess(args);
  }

  /** A player on free ports that has not published yet: it waits for a subscriber. */
  static async start(path: string, ...flags: readonly string[]): Promise<Played> {
    const free = 'tcp://127.0.0.1:0';
    const sockets = ['--endpoint', free, '--replay-endpoint', free];
    const played = new Played(['play', path, ...sockets, '--wait', ...flags]);
    await played.process.reaches('ready');
    return played;
  }

  get addresses(): { endpoint: string; replay_endpoint: string } {
    return this.process.results[0] as { endpoint: string; replay_endpoint: string };
  }

  subscribe(): ZmqCollector {
    const collector = new ZmqCollector(this.addresses.endpoint);
    onTestFinished(() => collector.close());
    return collector;
  }

  /** The frames of an answer as a DEALER sees them, end marker included. */
  async replay(...request: readonly Uint8Array[]): Promise<Buffer[][]> {
    const dealer = new Dealer({ linger: 0, receiveTimeout: 3000, receiveHighWaterMark: 0 });
    onTestFinished(() => dealer.close());
    dealer.connect(this.addresses.replay_endpoint);
    await dealer.send(request.map((frame) => Buffer.from(frame)));
    const answer: Buffer[][] = [];
    for (;;) {
      const frames = await dealer.receive();
      answer.push(frames);
      if (frames.at(-2)?.toString('hex') === END) return answer;
    }
  }
}

const EMPTY = Buffer.alloc(0);

function start(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}

function numbersOf(messages: readonly Buffer[][]): number[] {
  return messages.map(([, number]) => Number(number?.readBigUInt64BE()));
}

function hex(frames: readonly Uint8Array[]): string[] {
  return frames.map((frame) => Buffer.from(frame).toString('hex'));
}

test.each([
  ['new', (topic: Buffer): Buffer[] => [topic], [EMPTY]],
  ['old', (): Buffer[] => [], []],
])(
  'answers replay requests in the %s form',
  async (form, topicOf, endTopic) => {
    const sent = batches(5);
    const flags = ['--rate', '0', '--hold', '--replay-form', form];
    const played = await Played.start(fileOf(recordingOf(sent)), ...flags);
    const live = played.subscribe();
    await played.process.reaches('ended');
    const expected = sent.map(([topic, , payload], number) => {
      return hex([EMPTY, ...topicOf(topic as Buffer), start(number), payload as Buffer]);
    });
    const marker = hex([EMPTY, ...endTopic, Buffer.from(END, 'hex'), EMPTY]);
    expect((await played.replay(EMPTY, start(0))).map(hex)).toEqual([...expected, marker]);
    expect((await played.replay(EMPTY, start(3))).map(hex)).toEqual([...expected.slice(3), marker]);
    expect((await played.replay(EMPTY, start(5))).map(hex)).toEqual([marker]);
    // The first frame is not looked at, and a number may have any length.
    const odd = await played.replay(Buffer.from('x'), Buffer.from([4]));
    expect(odd.map(hex)).toEqual([...expected.slice(4), marker]);
    expect(await played.replay(EMPTY, EMPTY)).toHaveLength(6);
    await expect(played.replay(start(0))).rejects.toThrow(/timed out/);
    await expect(played.replay(EMPTY, start(0), EMPTY)).rejects.toThrow(/timed out/);
    expect(live.frames.map(hex)).toEqual(
      sent.map(([topic, , payload], n) => hex([topic as Buffer, start(n), payload as Buffer])),
    );
    expect(await played.process.exitCode('SIGTERM')).toBe(0);
    expect(played.process.results[1]).toEqual({ batches: 5, dropped: 0 });
  },
  20_000,
);

test('a replay has what its buffer holds', async () => {
  const flags = ['--rate', '0', '--hold', '--buffer-steps', '3'];
  const played = await Played.start(fileOf(recordingOf(batches(20))), ...flags);
  played.subscribe();
  await played.process.reaches('ended');
  const answer = await played.replay(EMPTY, start(0));
  expect(numbersOf(answer.slice(0, -1).map((frames) => frames.slice(1)))).toEqual([17, 18, 19]);
});

test('--drop leaves out live messages, the same for a seed; numbers and replays have them', async () => {
  const path = fileOf(recordingOf(batches(60)));
  const lives: number[][] = [];
  for (const seed of ['5', '5', '6']) {
    const flags = ['--rate', '0', '--hold', '--drop', '0.5', '--seed', seed];
    const played = await Played.start(path, ...flags);
    const live = played.subscribe();
    await played.process.reaches('ended');
    expect(await played.replay(EMPTY, start(0))).toHaveLength(61);
    lives.push(numbersOf(live.frames));
    expect(await played.process.exitCode('SIGINT')).toBe(0);
    const dropped = 60 - live.frames.length;
    expect(played.process.results[1]).toEqual({ batches: 60, dropped });
  }
  expect(lives[0]?.length).toBeGreaterThan(15);
  expect(lives[0]?.length).toBeLessThan(45);
  expect(lives[1]).toEqual(lives[0]);
  expect(lives[2]).not.toEqual(lives[0]);
});

test('--restart-at begins anew on the same ports, with nothing to replay from before', async () => {
  const flags = ['--rate', '0', '--hold', '--restart-at', '3'];
  const played = await Played.start(fileOf(recordingOf(batches(5))), ...flags);
  const live = played.subscribe();
  await played.process.reaches('ended');
  await played.process.sees(() => live.frames.length === 8);
  expect(numbersOf(live.frames)).toEqual([0, 1, 2, 0, 1, 2, 3, 4]);
  expect(hex(live.frames[3]?.slice(2) ?? [])).toEqual(hex(live.frames[0]?.slice(2) ?? []));
  const restarted = played.process.logs.find(({ state }) => state === 'restarted');
  expect(restarted?.endpoint).toBe(played.addresses.endpoint);
  const answer = await played.replay(EMPTY, start(0));
  expect(numbersOf(answer.slice(0, -1).map((frames) => frames.slice(1)))).toEqual([0, 1, 2, 3, 4]);
});

test('--loop clears the rank, numbers on and plays again', async () => {
  const played = await Played.start(fileOf(recordingOf(batches(3))), '--rate', '200', '--loop');
  const live = played.subscribe();
  await played.process.sees(() => live.frames.length > 9);
  const frames = live.frames.slice(0, 9);
  expect(numbersOf(frames)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  const clear = unpack(frames[3]?.[2] ?? EMPTY) as unknown[];
  expect(clear.slice(1)).toEqual([[{ type: 'AllBlocksCleared' }], 3]);
  expect(frames[4]?.[2]).toEqual(frames[0]?.[2]);
  expect(await played.process.exitCode('SIGINT')).toBe(0);
});

test('--delay-ms lets replays have a batch before it is live', async () => {
  const flags = ['--rate', '0', '--hold', '--delay-ms', '1500'];
  const played = await Played.start(fileOf(recordingOf(batches(3))), ...flags);
  const live = played.subscribe();
  await played.process.reaches('playing');
  expect((await played.replay(EMPTY, start(0))).length).toBeGreaterThan(1);
  expect(live.frames).toEqual([]);
  await played.process.reaches('ended');
  await played.process.sees(() => live.frames.length === 3);
  expect(numbersOf(live.frames)).toEqual([0, 1, 2]);
});

test('keeps to a rate and to the recorded times', async () => {
  const path = fileOf(recordingOf(batches(30)));
  for (const flags of [['--rate', '100'], []]) {
    const played = await Played.start(path, ...flags);
    const live = played.subscribe();
    await played.process.sees(() => live.frames.length > 0);
    const startMs = performance.now();
    await played.process.sees(() => live.frames.length === 30);
    expect(performance.now() - startMs).toBeGreaterThan(200);
  }
});

test('what is no batch is played as it was recorded, and takes no number', async () => {
  const [first, second] = batches(2) as [Buffer[], Buffer[]];
  const odd = [[Buffer.from('x')], [EMPTY, Buffer.from('short'), EMPTY]];
  const played = await Played.start(fileOf(recordingOf([first, ...odd, second])), '--rate', '0');
  const live = played.subscribe();
  expect(await played.process.exitCode()).toBe(0);
  await played.process.sees(() => live.frames.length === 4);
  expect(hex(live.frames[1] ?? [])).toEqual(hex(odd[0] ?? []));
  expect(hex(live.frames[2] ?? [])).toEqual(hex(odd[1] ?? []));
  expect(numbersOf([live.frames[3] ?? []])).toEqual([1]);
});

test('of a torn recording the whole members are played, and the tear is reported', async () => {
  const whole = recordingOf(batches(4), batches(2));
  const played = await Played.start(fileOf(whole.subarray(0, -5)), '--rate', '0');
  const live = played.subscribe();
  expect(await played.process.exitCode()).toBe(0);
  await played.process.sees(() => live.frames.length === 4);
  const torn = played.process.logs.filter(({ state }) => state === 'torn');
  expect(torn).toMatchObject([{ level: 'warn' }]);
  expect(String(torn[0]?.reason)).toMatch(/^an unfinished gzip member at byte \d+ of \d+$/);
});

test('what was sent has a second to leave when the process ends', async () => {
  const large = Array.from({ length: 2000 }, () => [EMPTY, start(0), Buffer.alloc(20_000)]);
  const played = await Played.start(fileOf(recordingOf(large)), '--rate', '0');
  const slow = new Subscriber({ linger: 0, receiveHighWaterMark: 10, receiveTimeout: 3000 });
  onTestFinished(() => slow.close());
  slow.subscribe();
  slow.connect(played.addresses.endpoint);
  await played.process.reaches('ended');
  await delay(200);
  for (let number = 0; number < 2000; number++) {
    expect(numbersOf([await slow.receive()])).toEqual([number]);
  }
  expect(await played.process.exitCode()).toBe(0);
});

test('plays a trace, whole or cut off', async () => {
  const played = await Played.start(TRACE, '--rate', '0');
  const live = played.subscribe();
  expect(await played.process.exitCode()).toBe(0);
  await played.process.sees(() => live.frames.length === 400);
  expect(numbersOf(live.frames).at(-1)).toBe(399);

  const cut = fileOf(readFileSync(TRACE).subarray(0, 500_000));
  const second = await Played.start(cut, '--rate', '0');
  second.subscribe();
  expect(await second.process.exitCode()).toBe(0);
  expect(second.process.logs.filter(({ state }) => state === 'torn')).toHaveLength(1);
});
