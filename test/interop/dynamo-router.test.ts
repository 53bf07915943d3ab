/** A stock KvRouter follows kvrelay, which it finds by discovery: what was sent is what it holds. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';
import { DYNAMO_PYTHON, type DynamoPeer } from './dynamo-peers.ts';
import { makePlace, type Place } from './places.ts';
import { pause, RelayHere, SAYS_CHANGES, startPeer } from './router-trial.ts';

async function startBoth(
  place: Place,
  flags: readonly string[] = [],
): Promise<{ engine: EngineStub; relay: RelayHere }> {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const relay = await RelayHere.startIn(place, engine.endpoint, flags);
  await engine.subscribed();
  return { engine, relay };
}

function startRouter({ shared }: Place): Promise<DynamoPeer> {
  return startPeer('dynamo_router', [...shared, SAYS_CHANGES]);
}

/** A store whose tokens follow from its first hash: equal tokens below one parent are one block to a router. */
function store(hashes: readonly number[], parent: number | null = null): unknown {
  const [first = 0] = hashes;
  return storeEvent(hashes, parent, { token_ids: tokensFrom(first * 100, hashes.length * 4) });
}

function rankOf(relay: RelayHere, index = 0) {
  const rank = relay.worker.status().ranks[index];
  if (rank === undefined) throw new Error('no such rank');
  return rank;
}

/** Parents and hashes of the blocks that a router holds of one rank, in order. */
function chains(router: DynamoPeer, dpRank = 0): (number | null)[][] {
  return router.index
    .filter((row) => row[1] === dpRank)
    .map(([, , , parent, hash]) => [parent === null ? null : Number(parent), Number(hash)])
    .sort((a, b) => (a[1] ?? 0) - (b[1] ?? 0));
}

/** The router has seen the record by then, and subscribed: what it misses before is lost to a live-only source. */
async function joined(relay: RelayHere): Promise<void> {
  await relay.ready();
  await pause(1000);
}

function senderTo(engine: EngineStub): (...events: unknown[]) => Promise<void> {
  let sequence = 0;
  return (...events) => engine.send(batchFrames(batch(events), sequence++));
}

describe.skipIf(DYNAMO_PYTHON === '')('a stock KvRouter', () => {
  test.each([
    ['nats', 'file'],
    ['zmq', 'file'],
    ['nats', 'etcd'],
    ['zmq', 'etcd'],
    ['broker', 'file'],
  ] as const)('follows a source on %s, found in %s', async (plane, discovery) => {
    const place = await makePlace({ eventPlane: plane, discovery });
    await startPeer('dynamo_worker', place.shared);
    const router = await startRouter(place);
    const { engine, relay } = await startBoth(place);
    await joined(relay);
    const send = senderTo(engine);
    await send(store([101, 102, 103]));
    await send(store([104], 103), store([201]));
    await send(removeEvent([104]), store([202], 201));
    await eventually(() => chains(router).length === 5, 10_000);
    expect(chains(router)).toEqual([
      [null, 101],
      [101, 102],
      [102, 103],
      [null, 201],
      [201, 202],
    ]);
    const { worker_id: workerId } = rankOf(relay);
    expect(new Set(router.index.map((row) => String(row[0])))).toEqual(new Set([workerId]));
    await send({ type: 'AllBlocksCleared' });
    expect(await eventually(() => router.index.length === 0, 10_000)).toBe(true);
    await send(store([301]));
    expect(await eventually(() => router.index.length === 1, 10_000)).toBe(true);
    await relay.worker.stop();
    expect(await eventually(() => router.index.length === 0, 5_000)).toBe(true);
  });

  test.each(['nats', 'zmq'] as const)('keeps two ranks on %s apart', async (plane) => {
    const place = await makePlace({ eventPlane: plane });
    const ranks = ['--dp-size', '2'];
    await startPeer('dynamo_worker', [...place.shared, ...ranks]);
    const router = await startRouter(place);
    const { engine, relay } = await startBoth(place, [...ranks, '--engine-sockets', 'shared']);
    await joined(relay);
    await engine.send(batchFrames(batch([store([101, 102])], 0), 0));
    await engine.send(batchFrames(batch([store([201])], 1), 1));
    await engine.send(batchFrames(batch([{ type: 'AllBlocksCleared' }], 0), 2));
    await engine.send(batchFrames(batch([store([103])], 0), 3));
    await eventually(() => chains(router).length === 1 && chains(router, 1).length === 1, 10_000);
    expect([chains(router), chains(router, 1)]).toEqual([[[null, 103]], [[null, 201]]]);
  });

  test('follows the successor of a worker, under the new id, with all that the engine holds', async () => {
    const place = await makePlace({ eventPlane: 'zmq' });
    const first = await startPeer('dynamo_worker', place.shared);
    const router = await startRouter(place);
    const { engine, relay } = await startBoth(place);
    await joined(relay);
    const send = senderTo(engine);
    await send(store([101]));
    expect(await eventually(() => router.index.length === 1, 10_000)).toBe(true);
    const before = rankOf(relay).worker_id;
    await first.stop();
    expect(await eventually(() => router.index.length === 0, 10_000)).toBe(true);
    expect(await eventually(() => rankOf(relay).worker_id === null, 5_000)).toBe(true);
    await startPeer('dynamo_worker', place.shared);
    expect(await eventually(() => rankOf(relay).worker_id !== null, 10_000)).toBe(true);
    await joined(relay);
    await send(store([301, 302]));
    await eventually(() => chains(router).length === 3, 10_000);
    // The engine has gone on: what it held before is told by the dump.
    expect(chains(router)).toEqual([
      [null, 101],
      [null, 301],
      [301, 302],
    ]);
    expect(rankOf(relay).worker_id).not.toBe(before);
    expect(String(router.index[0]?.[0])).toBe(rankOf(relay).worker_id);
  });

  test("is never told two sources: kvrelay concedes to a worker's own publisher", async () => {
    const place = await makePlace({ eventPlane: 'zmq' });
    const { engine, relay } = await startBoth(place);
    await startPeer('dynamo_worker', [...place.shared, '--publish', engine.endpoint]);
    const router = await startRouter(place);
    const isAmbiguous = (): boolean =>
      rankOf(relay).degraded.some(({ code }) => code === 'ambiguous_source');
    expect(await eventually(isAmbiguous, 10_000)).toBe(true);
    await pause(1500);
    await senderTo(engine)(store([101, 102]));
    await eventually(() => chains(router).length === 2, 10_000);
    expect(chains(router)).toEqual([
      [null, 101],
      [101, 102],
    ]);
    // Neither was ever taken away by a second claim.
    expect(router.indexSizes.filter((size) => size === 0).length).toBeLessThanOrEqual(1);
  });

  test('is back within seconds after a relay was killed and started again', async () => {
    const place = await makePlace({ eventPlane: 'nats' });
    await startPeer('dynamo_worker', place.shared);
    const router = await startRouter(place);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const flags = ['run', '--engine-endpoint', engine.endpoint, '--http', '127.0.0.1:0'];
    const first = new RunProcess([...flags, ...place.shared]);
    await first.ready();
    await pause(1000);
    const send = senderTo(engine);
    await send(store([101]));
    expect(await eventually(() => router.index.length === 1, 10_000)).toBe(true);
    await first.kill();
    const startedMs = performance.now();
    const second = new RunProcess([...flags, ...place.shared]);
    onTestFinished(async () => {
      await second.stop();
    });
    await second.ready();
    // Its record alone makes the router forget what the dead source had told.
    expect(await eventually(() => router.index.length === 0, 10_000)).toBe(true);
    expect(performance.now() - startedMs).toBeLessThan(5000);
    await pause(500);
    await send(store([201]));
    await eventually(() => router.index.length === 1, 10_000);
    expect(chains(router)).toEqual([[null, 201]]);
  });
});
