/** The event socket beside a real publisher socket. */
import { expect, onTestFinished, test } from 'vitest';
import { SourceMetrics } from '../../../src/metrics/source-metrics.ts';
import { MooncakeSubscriber } from '../../../src/stores/mooncake/subscriber.ts';
import { EngineStub } from '../../support/engine-stub.ts';
import { mooncakeEvent, mooncakeFrames } from '../../support/mooncake-messages.ts';
import { eventually } from '../../support/plane-collector.ts';

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
