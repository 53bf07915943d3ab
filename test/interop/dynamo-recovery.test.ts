/**
 * A stock Dynamo 1.6.1 router follows a source of this test and asks our recovery service for what it
 * missed. What it holds in the end is held against the index that it asked.
 */

import { describe, expect, test } from 'vitest';
import { FakeIndex } from '../support/fake-index.ts';
import { eventually } from '../support/plane-collector.ts';
import { type DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { KEPT_EVENTS, type Source, startSource } from './dynamo-source.ts';

/** Rows as the router's program prints them, in one order. */
function rowsOf({ index, workerId }: Pick<Source, 'index' | 'workerId'>): string[] {
  return index.blocks
    .map(({ parentHash, blockHash, tokensHash }) =>
      [workerId, 0, 'device', parentHash ?? '', blockHash, tokensHash].join(' '),
    )
    .sort();
}

function rowsIn(router: DynamoPeer): string[] {
  return router.index.map((row) => row.map((cell) => String(cell ?? '')).join(' ')).sort();
}

async function expectEqual(router: DynamoPeer, source: Source, timeoutMs = 10_000): Promise<void> {
  const wanted = rowsOf(source);
  await eventually(() => router.index.length === wanted.length, timeoutMs);
  expect(rowsIn(router)).toEqual(wanted);
}

const PLANES = [
  ['tcp', 'msgpack'],
  ['tcp', 'json'],
  ['nats', 'msgpack'],
  ['nats', 'json'],
] as const;

describe.skipIf(!hasDynamo()).each(PLANES)(
  'a stock router, requests over %s in %s',
  (plane, codec) => {
    test('gets a dump when it joins, ranges where events are missing, and knows what is too new', async () => {
      const source = await startSource(
        plane,
        codec,
        Array.from({ length: 20 }, () => 3),
      );
      const { index, metrics, publish, startRouter } = source;
      const router = await startRouter();
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 0 });

      publish(index.store(2));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 0 });

      for (let lost = 0; lost < 3; lost++) index.store(2);
      publish(index.store(1));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 1, events: 1 });

      for (let lost = 0; lost < KEPT_EVENTS + 1; lost++) index.store(2);
      publish(index.store(1));
      await expectEqual(router, source);
      expect(metrics.recoveryQueries).toMatchObject({ tree_dump: 2, events: 1 });

      // An event far ahead of what the index knows: the router asks, learns so, and takes it as it is.
      const ahead = new FakeIndex({ workerId: source.workerId });
      for (let id = 0; id < index.lastEventId + 4; id++) ahead.store(1);
      publish(ahead.store(1));
      expect(await eventually(() => metrics.recoveryQueries.too_new === 1)).toBe(true);
      expect(source.service.counts.refusedRequests).toEqual({
        unknown_path: 0,
        overloaded: 0,
        unsupported_transport: 0,
        malformed_request: 0,
      });
      expect(source.service.counts.failedAnswers).toEqual({
        unreachable: 0,
        timeout: 0,
        closed_early: 0,
      });
    });
  },
);

describe.skipIf(!hasDynamo())('a stock router', () => {
  test('asks again at once after its idle connection was closed', async () => {
    const source = await startSource('tcp', 'msgpack', [3], {
      limits: { idleTimeoutMs: 300, sweepMs: 50 },
    });
    const { index, metrics, publish, startRouter, service } = source;
    const router = await startRouter();
    await expectEqual(router, source);
    expect(await eventually(() => service.counts.droppedClients.idle > 0)).toBe(true);
    index.store(2);
    const startMs = performance.now();
    publish(index.store(2));
    expect(await eventually(() => metrics.recoveryQueries.events === 1)).toBe(true);
    // Sooner than its first pause between attempts.
    expect(performance.now() - startMs).toBeLessThan(150);
    await expectEqual(router, source);
  });

  test.each(['msgpack', 'json'] as const)(
    'takes a dump of 100,000 blocks whole, in %s',
    async (codec) => {
      const chains = Array.from({ length: 200 }, () => 500);
      const source = await startSource('tcp', codec, chains);
      const router = await source.startRouter('--interval', '1');
      await expectEqual(router, source, 60_000);
      expect(source.metrics.recoveryQueries).toMatchObject({ tree_dump: 1, error: 0 });
    },
  );

  test('asks again until a snapshot is possible, and keeps its place', async () => {
    const source = await startSource('tcp', 'msgpack', [2, 2]);
    const { index, metrics, publish, startRouter } = source;
    const router = await startRouter();
    await expectEqual(router, source);
    index.prepare = () => Promise.reject(new Error('no snapshot now'));
    index.store(2);
    publish(index.store(2));
    await eventually(() => metrics.recoveryQueries.error === 2);
    index.prepare = async () => undefined;
    await expectEqual(router, source);
    expect(metrics.recoveryQueries.events).toBe(1);
  });

  test('misses nothing of 6,000 events a second that come beside a dump of 300,000 blocks', async () => {
    const chains = Array.from({ length: 3000 }, () => 100);
    const source = await startSource('tcp', 'msgpack', chains, { keptEvents: 16_384 });
    const { index, metrics, publish, startRouter } = source;
    const joining = startRouter('--interval', '1', '--count');
    const startMs = performance.now();
    let events = 0;
    const live = setInterval(() => {
      for (; events < (performance.now() - startMs) * 6; events += 15) {
        publish(...Array.from({ length: 15 }, () => index.store(1)));
      }
    }, 1);
    await eventually(() => metrics.recoveryQueries.tree_dump > 0, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    clearInterval(live);
    const router = await joining;
    const isWhole = (): boolean => router.indexCount === index.blocks.length;
    await eventually(isWhole, 30_000);
    expect(router.indexCount).toBe(index.blocks.length);
    // Else it was no trial of the hold.
    expect(metrics.outputHoldSeconds.count).toBeGreaterThan(0);
    expect(metrics.outputHoldSeconds.sum).toBeLessThan(2.5);
  });
});
