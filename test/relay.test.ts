/** What a relay does beside its pipeline. */
import { expect, onTestFinished, test, vi } from 'vitest';
import type { NatsConnection } from '../src/connections/nats.ts';
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
  relay.served?.hold.begin(false);
  for (let sequence = 0; sequence < 5; sequence++) {
    relay.hold.publish({ sequence, eventCount: 128, envelope: Buffer.alloc(10) });
  }
  expect(relay.hold.heldMessages).toBe(3);
  relay.openPublisher(7n);
  expect(relay.hold.heldMessages).toBe(0);
  expect(relay.metrics.supersededMessages).toBe(3);
});

test('heartbeats: none while the plane is away or an answer holds output, a row of them when it is back', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const listeners: { onConnected: (isFirst: boolean) => void; onDisconnected: () => void }[] = [];
  const nats = {
    isConnected: true,
    maxPayloadBytes: 1 << 20,
    listen: (listener: (typeof listeners)[number]) => void listeners.push(listener),
    publish: () => undefined,
    confirm: () => Promise.resolve(),
  };
  const relay = new Relay({
    config: configOf('--block-size', '4', '--event-plane', 'nats', '--worker-id', '7'),
    dpRank: 0,
    warner: { warn: () => undefined },
    onPlaneChange: () => undefined,
    nats: nats as unknown as NatsConnection,
    onResync: () => undefined,
    isRecoverable: () => true,
  });
  onTestFinished(() => relay.stop(0));
  const beatsAfter = async (ms: number): Promise<number> => {
    const before = relay.metrics.heartbeats;
    await vi.advanceTimersByTimeAsync(ms);
    return relay.metrics.heartbeats - before;
  };
  expect(await beatsAfter(60_000)).toBe(0);
  relay.clear('gap');
  expect(await beatsAfter(60_000)).toBe(3);

  relay.clear('gap');
  nats.isConnected = false;
  listeners[0]?.onDisconnected();
  expect(await beatsAfter(60_000)).toBe(0);
  nats.isConnected = true;
  listeners[0]?.onConnected(false);
  expect(await beatsAfter(60_000)).toBe(3);

  relay.openPublisher(8n);
  listeners[0]?.onConnected(false);
  expect(await beatsAfter(60_000)).toBe(0);

  for (let count = 0; count < 300; count++) {
    relay.served?.hold.begin(false);
    relay.clear('gap');
  }
  expect(relay.hold.isHolding).toBe(true);
  expect(await beatsAfter(1000)).toBe(0);
  expect(await beatsAfter(60_000)).toBe(2);
});
