/** A stock KvRouter follows kvrelay, which it finds by discovery: what was sent is what it holds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import { DYNAMO_PYTHON, DynamoPeer } from './dynamo-peers.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Flags of relay and peers for one plane, with discovery in a directory of its own. */
interface Place {
  readonly shared: readonly string[];
  readonly relayOnly: readonly string[];
}

async function makePlace(eventPlane: 'nats' | 'zmq'): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'kvrelay-interop-'));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const shared = ['--discovery', 'file', '--discovery-dir', directory, '--namespace', 'interop-1'];
  shared.push('--event-plane', eventPlane, '--block-size', '4');
  if (eventPlane === 'zmq') {
    return { shared, relayOnly: ['--plane-endpoint', 'tcp://127.0.0.1:0'] };
  }
  const server = await startNatsServer();
  cleanups.push(() => server.stop());
  return { shared: [...shared, '--nats-server', server.url], relayOnly: [] };
}

async function startPeer(
  program: 'dynamo_worker' | 'dynamo_router',
  flags: readonly string[],
): Promise<DynamoPeer> {
  const peer = await DynamoPeer.start(program, flags);
  cleanups.push(() => peer.stop());
  return peer;
}

async function startRelay(
  { shared, relayOnly }: Place,
  flags: readonly string[] = [],
): Promise<{ engine: EngineStub; relay: Worker }> {
  const engine = await EngineStub.start();
  cleanups.push(() => engine.close());
  const own = ['--engine-endpoint', engine.endpoint, '--http', 'off'];
  const relay = createWorker(configOf(...own, ...shared, ...relayOnly, ...flags), { logger });
  cleanups.push(() => relay.stop());
  await relay.start();
  await engine.subscribed();
  return { engine, relay };
}

/** A store whose tokens follow from its first hash: equal tokens below one parent are one block to a router. */
function store(hashes: readonly number[], parent: number | null = null): unknown {
  const [first = 0] = hashes;
  return storeEvent(hashes, parent, { token_ids: tokensFrom(first * 100, hashes.length * 4) });
}

function rankOf(relay: Worker, index = 0) {
  const rank = relay.status().ranks[index];
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

describe.skipIf(DYNAMO_PYTHON === '')('a stock KvRouter', () => {
  test.each(['nats', 'zmq'] as const)(
    'follows a live-only source on the %s plane',
    async (plane) => {
      const place = await makePlace(plane);
      await startPeer('dynamo_worker', place.shared);
      const router = await startPeer('dynamo_router', place.shared);
      const { engine, relay } = await startRelay(place);
      expect(await eventually(() => relay.ready().ready, 5000)).toBe(true);
      // Until the router has seen the record and subscribed, it misses what is sent.
      await new Promise((resolve) => setTimeout(resolve, 1000));
      let sequence = 0;
      const send = (...events: unknown[]) => engine.send(batchFrames(batch(events), sequence++));
      await send(store([101, 102, 103]));
      await send(store([104], 103), store([201]));
      await send(removeEvent([104]), store([202], 201));
      const expected = [
        [null, 101],
        [101, 102],
        [102, 103],
        [null, 201],
        [201, 202],
      ];
      await eventually(() => chains(router).length === 5, 10_000);
      expect(chains(router)).toEqual(expected);
      const { worker_id: workerId } = rankOf(relay);
      expect(new Set(router.index.map((row) => String(row[0])))).toEqual(new Set([workerId]));
      await send({ type: 'AllBlocksCleared' });
      expect(await eventually(() => router.index.length === 0, 10_000)).toBe(true);
      await send(store([301]));
      expect(await eventually(() => router.index.length === 1, 10_000)).toBe(true);
      await relay.stop();
      expect(await eventually(() => router.index.length === 0, 5_000)).toBe(true);
    },
  );
});
