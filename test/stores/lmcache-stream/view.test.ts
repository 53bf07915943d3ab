/** What batches that are not as they should be do to what is held. */
import { expect, test } from 'vitest';
import { SourceMetrics } from '../../../src/metrics/source-metrics.ts';
import { StreamView } from '../../../src/stores/lmcache-stream/stream-view.ts';
import { ObjectState } from '../../../src/stores/objects/object-state.ts';
import { ChunkFeed } from '../../../src/stores/placement/chunk-feed.ts';
import { batchPayload, removedRecord, storedRecord } from '../../support/lmcache-stream.ts';
import { ChunkTrial } from '../placement/chunk-trial.ts';

const newState = (): ObjectState =>
  new ObjectState({
    maxObjects: 5000,
    maxKeyBytes: 1_000_000,
    maxScopes: 4,
    maxAttributeSets: 4,
    onChange: () => undefined,
  });

class CountedFeed extends ChunkFeed {
  withdrawals = 0;

  override removedAll(): void {
    this.withdrawals++;
    super.removedAll();
  }
}

test('what a restart gives up goes at once, from the routers over several turns until it is stopped', () => {
  for (const isStopped of [false, true]) {
    const chunks = new ChunkTrial();
    const view = new StreamView({
      modelName: 'm',
      state: newState(),
      metrics: new SourceMetrics(),
      feed: chunks.placements.feed(true),
      onLoss: () => undefined,
      defer: (portion) => portion(),
    });
    const hashes = Array.from({ length: 600 }, (_, at) => Buffer.alloc(32, `${at} `));
    const events = hashes.map((hash, at) => storedRecord(at + 1, hash, null, [at, at]));
    view.take(batchPayload({ events, next_cursor: 601 }), () => undefined);
    chunks.turn();
    expect([view.isWithdrawing, chunks.placements.placedBlocks]).toEqual([false, 600]);
    expect(view.take(batchPayload({ incarnation: 2n ** 63n }), () => undefined)).toBe('again');
    chunks.portion();
    expect([view.objects, view.isWithdrawing]).toEqual([0, true]);
    if (isStopped) view.stop();
    chunks.turn();
    expect(view.isWithdrawing).toBe(false);
    expect(chunks.placements.placedBlocks > 0).toBe(isStopped);
  }
});

test('many records of a batch that cannot be read give up what stood before them once', () => {
  const chunks = new ChunkTrial();
  chunks.placements.feed(true);
  const feed = new CountedFeed(chunks.placements, { l1: 1, l2: 2 });
  const losses: string[] = [];
  const metrics = new SourceMetrics();
  const state = newState();
  const onLoss = (cause: string): void => void losses.push(cause);
  const defer = (): void => undefined;
  const view = new StreamView({ modelName: 'm', state, metrics, feed, onLoss, defer });
  const take = (payload: Buffer): string => view.take(payload, () => undefined);
  const hash = (number: number): Buffer => Buffer.alloc(32, number);
  take(batchPayload({ events: [storedRecord(1, hash(1), null, [1, 2])] }));
  const unreadable = { ...removedRecord(2, []), block_hashes: 5 };
  const events = Array.from({ length: 500 }, (_, at) => [
    storedRecord(at, hash(at % 250), null, [at, 3]),
    unreadable,
  ]).flat();
  const last = storedRecord(1000, hash(251), null, [5, 6]);
  expect(take(batchPayload({ events: [...events, last], next_cursor: 1001 }))).toBe('next');
  chunks.turn();
  expect([feed.withdrawals, losses]).toEqual([1, ['unreadable']]);
  expect(metrics.droppedEvents.bad_field).toBe(500);
  expect(metrics.events.stored).toEqual({ received: 502, applied: 2, repeated: 500 });
  expect([view.objects, chunks.placements.placedBlocks]).toEqual([1, 1]);
  expect(chunks.match([5, 6]).host_pinned).toBe(1);
});
