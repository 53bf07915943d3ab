/** One stalled and one healthy subscriber on a real socket. */

import { expect, test } from 'vitest';
import { Subscriber } from 'zeromq';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { ZmqPlane } from '../../src/sinks/zmq.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';

const pause = (ms: number): Promise<string> =>
  new Promise((resolve) => setTimeout(() => resolve('nothing'), ms));

const MESSAGES = 3000;
/** So large that the kernel's socket buffers hold few of them. */
const ENVELOPE_BYTES = 16 << 10;

test('a stalled subscriber is counted and shown; a healthy one gets everything, in order', async () => {
  const metrics = new RelayMetrics();
  const events: string[] = [];
  const plane = new ZmqPlane(
    {
      endpoint: 'tcp://127.0.0.1:0',
      brokers: [],
      topic: 'kv-events',
      advertise: (bound) => bound,
      publisherId: 7,
      outboxBytes: 1 << 30,
      lingerMs: 0,
      sendHwm: 200,
      onEvent: (event) => events.push(event.kind === 'dropped' ? event.reason : event.kind),
    },
    metrics,
  );
  await plane.start();
  const endpoint = plane.endpoint ?? '';
  const stalled = new Subscriber({ linger: 0, receiveHighWaterMark: 1 });
  stalled.subscribe();
  stalled.connect(endpoint);
  const healthy = new ZmqCollector(endpoint);
  await healthy.subscribed();

  for (let sequence = 0; sequence < MESSAGES; sequence++) {
    plane.publish({ sequence, eventCount: 1, envelope: Buffer.alloc(ENVELOPE_BYTES) });
    // No faster than the healthy one reads, so that what it gets is not a matter of luck.
    if (sequence % 50 === 49) await eventually(() => healthy.frames.length === sequence + 1);
  }
  await eventually(() => healthy.frames.length === MESSAGES);

  const numbers = healthy.frames.map((frames) => Number(frames[2]?.readBigUInt64BE()));
  expect(numbers).toEqual(Array.from({ length: MESSAGES }, (_, index) => index));
  const lost = metrics.publishFailures.slow_subscriber;
  expect(lost).toBeGreaterThan(0);
  expect(metrics.publishFailures.client).toBe(0);
  expect(plane.hasSlowSubscriber).toBe(true);
  expect(new Set(events)).toEqual(new Set(['connected', 'slow_subscriber']));

  // Each message that it did not get was counted, and no other.
  let received = 0;
  for (; received + lost < MESSAGES; received++) await stalled.receive();
  expect(await Promise.race([stalled.receive(), pause(100)])).toBe('nothing');

  stalled.close();
  await healthy.close();
  await plane.stop();
});

test('a subscriber that asks for a topic of many bytes loses its link, others keep theirs', async () => {
  const plane = new ZmqPlane(
    {
      endpoint: 'tcp://127.0.0.1:0',
      brokers: [],
      topic: 'kv-events',
      advertise: (bound) => bound,
      publisherId: 7,
      outboxBytes: 1 << 20,
      lingerMs: 0,
      onEvent: () => undefined,
    },
    new RelayMetrics(),
  );
  await plane.start();
  const endpoint = plane.endpoint ?? '';
  const healthy = new ZmqCollector(endpoint);
  await healthy.subscribed();
  const greedy = new Subscriber({ linger: 0, reconnectInterval: 60_000 });
  greedy.subscribe('x'.repeat(64 << 10));
  let isCut = false;
  greedy.events.on('disconnect', () => {
    isCut = true;
  });
  greedy.connect(endpoint);
  expect(await eventually(() => isCut)).toBe(true);
  plane.publish({ sequence: 0, eventCount: 1, envelope: Buffer.alloc(10) });
  expect(await eventually(() => healthy.frames.length === 1)).toBe(true);
  greedy.close();
  await healthy.close();
  await plane.stop();
});
