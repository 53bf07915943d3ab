/** The made-up stream before the first events: it runs the whole way, in turns, and leaves nothing behind. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { totalOf } from '../src/metrics/counts.ts';
import type { RelayMetrics } from '../src/metrics/relay-metrics.ts';
import { Relay } from '../src/relay.ts';
import { warmUp } from '../src/warm-up.ts';
import { configOf } from './support/worker-config.ts';

const config = configOf(
  '--engine-endpoint',
  'tcp://127.0.0.1:1',
  '--block-size',
  '4',
  '--dp-rank',
  '3',
);

test('every event of it goes all the way', async () => {
  const spy = vi.spyOn(Relay.prototype, 'stop');
  onTestFinished(() => spy.mockRestore());
  expect(await warmUp(config, () => true)).toBe(3000);
  const relays = (spy.mock.contexts as Relay[]).map(({ metrics }) => metrics);
  const sum = (of: (metrics: RelayMetrics) => number): number =>
    relays.reduce((total, metrics) => total + of(metrics), 0);
  expect(relays).toHaveLength(2);
  // Neighbours that continue each other share an event.
  expect(sum(({ publishedBlocks }) => publishedBlocks.stored)).toBeGreaterThan(3000 * 16);
  expect(sum(({ publishedBlocks }) => publishedBlocks.removed)).toBeGreaterThan(2900 * 16);
  expect(sum(({ filtered }) => totalOf(filtered.stored) + totalOf(filtered.removed))).toBe(0);
  // Loaded and unloaded turns: messages of a batch, and shared ones.
  expect(sum(({ publishedMessages }) => publishedMessages)).toBeGreaterThan(200);
  expect(sum(({ publishedMessages }) => publishedMessages)).toBeLessThan(2800);
});

test('it gives way at once to the first events', async () => {
  let asked = 0;
  expect(await warmUp(config, () => asked++ < 2)).toBeLessThan(3000);
  expect(asked).toBe(3);
  expect(await warmUp(config, () => false)).toBe(0);
});

test('timers have their turn meanwhile', async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  onTestFinished(() => clearInterval(timer));
  await warmUp(config, () => true);
  expect(ticks).toBeGreaterThan(3);
});
