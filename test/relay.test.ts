/** What a relay does beside its pipeline. */
import { expect, onTestFinished, test } from 'vitest';
import { Relay } from '../src/relay.ts';
import { configOf } from './support/worker-config.ts';

test('a new incarnation leaves nothing of the one before it waiting for an answer', async () => {
  const config = configOf('--block-size', '4', '--event-plane', 'none', '--worker-id', '7');
  const relay = new Relay({
    config,
    dpRank: 0,
    warner: { warn: () => undefined },
    onPlaneChange: () => undefined,
    nats: null,
    onResync: () => undefined,
  });
  onTestFinished(() => relay.stop(0));
  relay.served?.hold.begin();
  for (let sequence = 0; sequence < 5; sequence++) {
    relay.hold.publish({ sequence, eventCount: 128, envelope: Buffer.alloc(10) });
  }
  expect(relay.hold.heldMessages).toBe(3);
  relay.openPublisher(7n);
  expect(relay.hold.heldMessages).toBe(0);
  expect(relay.metrics.supersededMessages).toBe(3);
});
