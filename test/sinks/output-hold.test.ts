import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlaneMessage } from '../../src/protocol/envelope.ts';
import { OutputHold } from '../../src/sinks/output-hold.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const MESSAGE_BYTES = 100;

interface Trial {
  readonly hold: OutputHold;
  readonly metrics: RelayMetrics;
  /** Numbers of the messages that have left. */
  readonly left: number[];
  /** Publishes that many messages of `eventCount` events. */
  readonly publish: (messageCount: number, eventCount?: number) => void;
  overruns: number;
  planeBytes: number;
}

function start(maxBytes = 1 << 20, maxHoldMs = 2000): Trial {
  const left: number[] = [];
  const metrics = new RelayMetrics();
  let sequence = 0;
  const sink = {
    maxMessageBytes: 1234,
    get outboxBytes(): number {
      return trial.planeBytes;
    },
    publish: (message: PlaneMessage): void => void left.push(message.sequence),
  };
  const onOverrun = (): void => void trial.overruns++;
  const hold = new OutputHold({ maxBytes, maxHoldMs, onOverrun }, sink, metrics);
  const publish = (messageCount: number, eventCount = 128): void => {
    for (let count = 0; count < messageCount; count++) {
      hold.publish({ sequence: sequence++, eventCount, envelope: Buffer.alloc(MESSAGE_BYTES) });
    }
  };
  const trial: Trial = { hold, metrics, left, publish, overruns: 0, planeBytes: 0 };
  return trial;
}

test('without an answer on its way everything passes at once', () => {
  const { hold, left, publish } = start();
  publish(100);
  expect(left).toHaveLength(100);
  expect(hold.maxMessageBytes).toBe(1234);
});

test('256 events pass beside an answer, the rest waits for it, in order', () => {
  const { hold, left, publish, metrics } = start();
  publish(3);
  const end = hold.begin();
  publish(2);
  expect(left).toEqual([0, 1, 2, 3, 4]);
  publish(2);
  publish(1, 1);
  expect(left).toHaveLength(5);
  expect(hold.heldMessages).toBe(3);
  expect(hold.heldBytes).toBe(3 * MESSAGE_BYTES);
  vi.advanceTimersByTime(500);
  end(0);
  expect(left).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(hold.heldMessages).toBe(0);
  expect(hold.heldBytes).toBe(0);
  expect(metrics.outputHoldSeconds.count).toBe(1);
  expect(metrics.outputHoldSeconds.sum).toBeCloseTo(0.5, 2);
  end(0);
  publish(10);
  expect(left).toHaveLength(18);
});

test('exactly 256 events are no reason to hold', () => {
  const { hold, left, publish } = start();
  hold.begin();
  publish(256, 1);
  expect(left).toHaveLength(256);
  publish(1, 1);
  expect(left).toHaveLength(256);
});

test('a hold tells whom it is for, once', () => {
  const { hold, publish } = start();
  const held: string[] = [];
  hold.begin(() => held.push('first'));
  hold.begin(() => held.push('second'));
  publish(2);
  expect(held).toEqual([]);
  publish(5);
  expect(held).toEqual(['first', 'second']);
});

test('a hold tells each message that leaves beside an answer, and none after it', () => {
  const { hold, publish } = start();
  let passed = 0;
  const end = hold.begin(undefined, () => void passed++);
  publish(3);
  expect(passed).toBe(2);
  end(100);
  expect(passed).toBe(3);
  publish(1);
  expect(passed).toBe(4);
  vi.advanceTimersByTime(100);
  publish(1);
  expect(passed).toBe(4);
});

test('beside an answer that is late, more events than a router keeps are an overrun, once', () => {
  const trial = start();
  const end = trial.hold.begin();
  trial.publish(2);
  vi.advanceTimersByTime(3000);
  trial.publish(4);
  expect([trial.left.length, trial.overruns]).toEqual([6, 0]);
  trial.publish(1);
  expect([trial.left.length, trial.overruns]).toEqual([7, 1]);
  trial.publish(20);
  end(100);
  trial.publish(20);
  expect([trial.left.length, trial.overruns]).toEqual([47, 1]);
});

test('a late answer counts what passes until it is applied, and no longer', () => {
  const trial = start();
  const end = trial.hold.begin();
  vi.advanceTimersByTime(3000);
  trial.publish(5);
  end(50);
  trial.publish(1);
  vi.advanceTimersByTime(50);
  trial.publish(20);
  expect([trial.left.length, trial.overruns]).toEqual([26, 0]);
  const slow = trial.hold.begin();
  vi.advanceTimersByTime(1990);
  slow(50);
  vi.advanceTimersByTime(20);
  trial.publish(7);
  expect([trial.left.length, trial.overruns]).toEqual([33, 1]);
});

test('an answer that is not through after 2 s holds nothing any more', () => {
  const trial = start();
  trial.hold.begin();
  vi.advanceTimersByTime(1000);
  trial.publish(5);
  vi.advanceTimersByTime(999);
  expect(trial.left).toHaveLength(2);
  vi.advanceTimersByTime(1);
  expect(trial.left).toHaveLength(5);
  expect(trial.overruns).toBe(1);
  trial.publish(5);
  expect(trial.left).toHaveLength(10);
});

test('no message waits for more than 2 s, however many answers follow each other', () => {
  const trial = start();
  const publishedAtMs: number[] = [];
  let longestMs = 0;
  for (let ms = 0; ms < 20_000; ms += 50) {
    if (ms % 300 === 0) trial.hold.begin();
    publishedAtMs.push(ms);
    trial.publish(1);
    const before = trial.left.length;
    vi.advanceTimersByTime(50);
    const leftNow = trial.left.slice(before);
    for (const sequence of leftNow) {
      longestMs = Math.max(longestMs, ms + 50 - (publishedAtMs[sequence] as number));
    }
  }
  expect(trial.left).toEqual(publishedAtMs.slice(0, trial.left.length).map((_, index) => index));
  expect(longestMs).toBeGreaterThan(1000);
  expect(longestMs).toBeLessThanOrEqual(2000);
});

test('what is held for two answers goes out as far as the later one allows', () => {
  const { hold, left, publish } = start();
  const endFirst = hold.begin();
  publish(2);
  const endSecond = hold.begin();
  publish(4);
  expect(left).toHaveLength(2);
  endFirst(0);
  expect(left).toEqual([0, 1, 2, 3]);
  endSecond(0);
  expect(left).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a hold ends early where the outbox would have no room for it', () => {
  const trial = start(10 * MESSAGE_BYTES);
  trial.planeBytes = 5 * MESSAGE_BYTES;
  trial.hold.begin();
  trial.publish(2 + 4);
  expect(trial.left).toHaveLength(2);
  trial.publish(1);
  expect(trial.left).toHaveLength(7);
  expect(trial.overruns).toBe(1);
});

test('while a router applies the answer it has, 768 events may have passed in all', () => {
  const trial = start();
  const end = trial.hold.begin();
  trial.publish(10);
  expect(trial.left).toHaveLength(2);
  end(400);
  expect(trial.left).toHaveLength(6);
  vi.advanceTimersByTime(399);
  trial.publish(1);
  expect(trial.left).toHaveLength(6);
  vi.advanceTimersByTime(1);
  expect(trial.left).toHaveLength(11);
  expect(trial.overruns).toBe(0);
});

test('it is given no longer for that than 2 s after the answer was fixed', () => {
  const trial = start();
  const end = trial.hold.begin();
  vi.advanceTimersByTime(1500);
  end(5000);
  trial.publish(10);
  expect(trial.left).toHaveLength(6);
  vi.advanceTimersByTime(499);
  expect(trial.left).toHaveLength(6);
  vi.advanceTimersByTime(1);
  expect(trial.left).toHaveLength(10);
  expect(trial.overruns).toBe(1);
});

test('with a limit of 0 nothing is ever held', () => {
  const { hold, left, publish } = start(1 << 20, 0);
  const end = hold.begin();
  publish(100);
  end(1000);
  publish(100);
  expect(left).toHaveLength(200);
  expect(vi.getTimerCount()).toBe(0);
});

test('discard() gives up what is held, for a publisher that is no more', async () => {
  const { hold, left, publish, metrics } = start();
  hold.begin();
  publish(10);
  const idle = hold.idle();
  expect(hold.discard()).toBe(8);
  await idle;
  expect([hold.heldMessages, hold.heldBytes, hold.discard()]).toEqual([0, 0, 0]);
  expect(metrics.outputHoldSeconds.count).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
  publish(1);
  expect(left).toEqual([0, 1, 10]);
});

test('release() lets everything go', () => {
  const { hold, left, publish } = start();
  hold.begin();
  publish(10);
  hold.release();
  expect(left).toHaveLength(10);
  publish(10);
  expect(left).toHaveLength(20);
  expect(vi.getTimerCount()).toBe(0);
});
