/** The event socket beside a real publisher socket. */
import { expect, onTestFinished, test } from 'vitest';
import { SourceMetrics } from '../../../src/metrics/source-metrics.ts';
import { MooncakeSubscriber } from '../../../src/stores/mooncake/subscriber.ts';
import { EngineStub } from '../../support/engine-stub.ts';
import { mooncakeEvent, mooncakeFrames } from '../../support/mooncake-messages.ts';
import { eventually } from '../../support/plane-collector.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Listening {
  readonly metrics: SourceMetrics;
  readonly seen: string[];
}

function listen(endpoint: string): Listening {
  const metrics = new SourceMetrics();
  const seen: string[] = [];
  const subscriber = new MooncakeSubscriber(
    {
      endpoint,
      onMessage: (sequence) => seen.push(`${sequence}`),
      onMalformed: (fault) => seen.push(fault),
      onLink: (isConnected) => seen.push(isConnected ? 'up' : 'down'),
    },
    metrics,
  );
  subscriber.start();
  onTestFinished(() => subscriber.stop());
  return { metrics, seen };
}

test('a message has three frames and 8 bytes of number; others are counted by their fault', async () => {
  const stub = await EngineStub.start();
  onTestFinished(() => stub.close());
  const { metrics, seen } = listen(stub.endpoint);
  await stub.subscribed();
  const good = mooncakeFrames(2n ** 64n - 1n, [mooncakeEvent('stored', 1)]);
  const [topic = Buffer.alloc(0), number = Buffer.alloc(0), payload = Buffer.alloc(0)] = good;
  await stub.send([number, payload]);
  await stub.send([topic, number, payload, topic]);
  await stub.send([topic, number.subarray(1), payload]);
  await stub.send(good);
  expect(await eventually(() => seen.length === 5)).toBe(true);
  expect(seen).toEqual(['up', 'frames', 'frames', 'sequence', '18446744073709551615']);
  expect(metrics).toMatchObject({
    messages: 1,
    bytes: payload.length,
    malformed: { frames: 2, sequence: 1 },
  });
});

test('a message that is too large ends the link, and the link comes again', async () => {
  const stub = await EngineStub.start();
  onTestFinished(() => stub.close());
  const { metrics, seen } = listen(stub.endpoint);
  await stub.subscribed();
  await stub.send(mooncakeFrames(1n, [mooncakeEvent('stored', 1)]));
  expect(await eventually(() => seen.includes('1'))).toBe(true);
  await stub.send([Buffer.alloc(0), Buffer.alloc(8), Buffer.alloc(17 << 20)]);
  expect(await eventually(() => seen.includes('down'))).toBe(true);
  expect(await eventually(() => seen.at(-1) === 'up', 20_000)).toBe(true);
  // The publisher takes note of the subscription in its own time.
  for (let time = 0; time < 200 && !seen.includes('3'); time++) {
    await stub.send(mooncakeFrames(3n, [mooncakeEvent('stored', 3)]));
    await pause(50);
  }
  await stub.send(mooncakeFrames(9n, [mooncakeEvent('stored', 9)]));
  expect(await eventually(() => seen.includes('9'))).toBe(true);
  // No second link to the same publisher, which would bring everything twice.
  await pause(2000);
  expect(seen.filter((one) => one === '9')).toHaveLength(1);
  expect(seen.filter((one) => one === 'up')).toHaveLength(2);
  expect(metrics.connects).toBe(2);
}, 40_000);
