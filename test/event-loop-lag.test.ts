import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { EventLoopLag } from '../src/event-loop-lag.ts';

const lag = new EventLoopLag();

afterEach(() => lag.stop());

function hold(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** The least of several readings: a busy machine holds everybody up now and then. */
async function leastSeconds(readings: number, use: () => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < readings; reading++) {
    lag.takeSeconds();
    await use();
    least = Math.min(least, lag.takeSeconds());
  }
  return least;
}

test('a loop at rest shows no lag of the clock that looks', async () => {
  lag.start();
  expect(await leastSeconds(10, () => delay(40))).toBeLessThan(0.008);
});

test('a hold is told once, in its length, also right behind a reading', async () => {
  lag.start();
  await delay(20);
  const least = await leastSeconds(5, async () => {
    hold(60);
    await delay(15);
  });
  expect(least).toBeGreaterThan(0.045);
  expect(least).toBeLessThan(0.1);
  expect(await leastSeconds(5, () => delay(15))).toBeLessThan(0.045);
});
