/**
 * A stock router of Dynamo 1.6.1 that asks a whole relay, found by discovery: what it ends with is what
 * the relay's index holds, whenever the router came.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { etcdServerAvailable } from '../support/etcd-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { type DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { makePlace, type Surroundings } from './places.ts';
import { expectSame, RelayHere, startPeer } from './router-trial.ts';

interface Trial {
  readonly relay: RelayHere;
  readonly startRouter: (...flags: string[]) => Promise<DynamoPeer>;
  readonly send: (...events: unknown[]) => Promise<void>;
  /** One engine message with a chain of `blockCount` blocks that no other has; numbers count from 1. */
  readonly storeChain: (blockCount: number) => Promise<void>;
  /** Everything sent is passed on. */
  readonly passed: () => Promise<void>;
}

async function startTrial(
  surroundings: Surroundings,
  flags: readonly string[] = [],
): Promise<Trial> {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const place = await makePlace(surroundings);
  await startPeer('dynamo_worker', place.shared);
  const relay = await RelayHere.startIn(place, engine.endpoint, flags);
  await engine.subscribed();
  await relay.ready();

  let sequence = 0;
  let stored = 0;
  const send = (...events: unknown[]): Promise<void> =>
    engine.send(batchFrames(batch(events), sequence++));
  const storeChain = async (blockCount: number): Promise<void> => {
    const hashes = Array.from({ length: blockCount }, (_, index) => stored + index + 1);
    const tokens = tokensFrom(stored * 4, blockCount * 4);
    stored += blockCount;
    await send(storeEvent(hashes, null, { token_ids: tokens }));
  };
  const startRouter = (...more: string[]): Promise<DynamoPeer> =>
    startPeer('dynamo_router', [...place.shared, ...more]);
  return { relay, startRouter, send, storeChain, passed: () => relay.passed(sequence - 1) };
}

const MATRIX = (['nats', 'zmq'] as const).flatMap((eventPlane) =>
  (['tcp', 'nats'] as const).flatMap((requestPlane) =>
    (['file', 'etcd'] as const).map((discovery) => ({ eventPlane, requestPlane, discovery })),
  ),
);

function canFind(discovery: 'file' | 'etcd'): boolean {
  return hasDynamo() && (discovery === 'file' || etcdServerAvailable());
}

describe.each(MATRIX)(
  'a stock router, events on $eventPlane, requests on $requestPlane, found in $discovery',
  (surroundings) => {
    test.skipIf(!canFind(surroundings.discovery))(
      'gets what was stored before it came, and follows from there',
      async () => {
        const { relay, startRouter, send, storeChain, passed } = await startTrial(surroundings);
        for (let chain = 0; chain < 20; chain++) await storeChain(100);
        await send(storeEvent([9001, 9002], 2000, { medium: 'CPU' }));
        await passed();
        const router = await startRouter();
        expect(await expectSame(router, relay)).toHaveLength(2002);

        await storeChain(3);
        await send(removeEvent([51]), removeEvent([9001], { medium: 'CPU' }));
        await passed();
        // The chain's second half goes with its 51st block.
        expect(await expectSame(router, relay)).toHaveLength(1954);

        await send({ type: 'AllBlocksCleared' });
        await storeChain(5);
        await passed();
        expect(await expectSame(router, relay)).toHaveLength(5);
      },
    );
  },
);

describe.skipIf(!hasDynamo())('a stock router', () => {
  test.each(['nats', 'zmq'] as const)(
    'that joins a busy source of 50,000 blocks on %s ends with everything',
    async (eventPlane) => {
      // Where the join met events that had to wait, the source is announced anew after such a quiet.
      const flags = ['--resync-quiet-ms', '1500'];
      const trial = await startTrial({ eventPlane }, flags);
      const { relay, startRouter, storeChain } = trial;
      for (let chain = 0; chain < 100; chain++) await storeChain(500);
      await trial.passed();
      let chains = 0;
      let isBusy = true;
      const live = (async (): Promise<void> => {
        for (; isBusy; chains++) {
          await storeChain(1);
          if (chains % 8 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
      const before = chains;
      const router = await startRouter('--interval', '0.5', '--count');
      expect(await eventually(() => router.indexCount > 50_000, 30_000)).toBe(true);
      const after = chains;
      expect(after).toBeGreaterThan(before + 1000);
      expect(await eventually(() => chains > after + 1000, 30_000)).toBe(true);
      isBusy = false;
      await live;
      await trial.passed();
      const rows = await expectSame(router, relay);
      expect(rows).toHaveLength(50_000 + chains);
    },
  );
});
