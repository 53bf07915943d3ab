/**
 * A stock router of Dynamo 1.6.1 that asks a whole relay, found by discovery: what it ends with is what
 * the engine stored, whenever the router came.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import { DynamoPeer } from './dynamo-peers.ts';
import { hasDynamo, RegistryFolder } from './registry-folder.ts';

const logger = createLogger({ level: 'silent', format: 'json' });

interface Trial {
  readonly engine: EngineStub;
  readonly relay: Worker;
  readonly startRouter: (...flags: string[]) => Promise<DynamoPeer>;
  /** One engine message with a chain of `blockCount` blocks that no other has. */
  readonly storeChain: (blockCount: number) => Promise<void>;
}

async function startTrial(
  eventPlane: 'nats' | 'zmq',
  requestPlane: 'tcp' | 'nats',
  flags: readonly string[] = [],
): Promise<Trial> {
  const nats = await startNatsServer();
  const engine = await EngineStub.start();
  onTestFinished(async () => {
    engine.close();
    await nats.stop();
  });
  const place = [
    `--discovery-dir=${new RegistryFolder().path}`,
    '--discovery=file',
    '--namespace=interop-2',
    '--block-size=4',
    `--nats-server=${nats.url}`,
    `--event-plane=${eventPlane}`,
    `--request-plane=${requestPlane}`,
  ];
  const startPeer = async (
    program: 'dynamo_worker' | 'dynamo_router',
    more: readonly string[] = [],
  ): Promise<DynamoPeer> => {
    const peer = await DynamoPeer.start(program, [...place, ...more]);
    onTestFinished(() => peer.stop());
    return peer;
  };
  await startPeer('dynamo_worker');
  const own = ['--http', 'off', '--engine-endpoint', engine.endpoint];
  const onZmq = eventPlane === 'zmq' ? ['--plane-endpoint', 'tcp://127.0.0.1:0'] : [];
  const relay = createWorker(configOf(...place, ...own, ...onZmq, ...flags), { logger });
  onTestFinished(() => relay.stop());
  await relay.start();
  await engine.subscribed();
  expect(await eventually(() => relay.ready().ready, 10_000)).toBe(true);

  let sequence = 0;
  let stored = 0;
  const storeChain = async (blockCount: number): Promise<void> => {
    const hashes = Array.from({ length: blockCount }, (_, index) => stored + index + 1);
    const tokens = tokensFrom(stored * 4, blockCount * 4);
    stored += blockCount;
    const event = storeEvent(hashes, null, { token_ids: tokens });
    await engine.send(batchFrames(batch([event]), sequence++));
  };
  const startRouter = (...more: string[]): Promise<DynamoPeer> => startPeer('dynamo_router', more);
  return { engine, relay, startRouter, storeChain };
}

function liveBlocks(relay: Worker): number {
  return relay.status().ranks[0]?.blocks.device ?? 0;
}

describe.skipIf(!hasDynamo())('a stock router', () => {
  test.each([
    ['nats', 'tcp'],
    ['nats', 'nats'],
    ['zmq', 'tcp'],
    ['zmq', 'nats'],
  ] as const)(
    'that comes late gets what was stored before it, events on %s and queries on %s',
    async (eventPlane, requestPlane) => {
      const { relay, startRouter, storeChain } = await startTrial(eventPlane, requestPlane);
      for (let chain = 0; chain < 20; chain++) await storeChain(100);
      expect(await eventually(() => liveBlocks(relay) === 2000)).toBe(true);
      const router = await startRouter();
      expect(await eventually(() => router.index.length === 2000)).toBe(true);
      await storeChain(3);
      await eventually(() => router.index.length === 2003);
      const hashes = router.index.map((row) => Number(row[4])).sort((a, b) => a - b);
      expect(hashes).toEqual(Array.from({ length: 2003 }, (_, index) => index + 1));
    },
  );

  test('that joins a busy source ends with everything', async () => {
    const flags = ['--resync-quiet-ms', '1500'];
    const { relay, startRouter, storeChain } = await startTrial('nats', 'tcp', flags);
    for (let chain = 0; chain < 200; chain++) await storeChain(500);
    expect(await eventually(() => liveBlocks(relay) === 100_000, 20_000)).toBe(true);
    const { publisher_id: before } = relay.status().ranks[0] ?? {};
    let isBusy = true;
    const live = (async (): Promise<void> => {
      while (isBusy) {
        for (let chain = 0; chain < 8; chain++) await storeChain(1);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    const router = await startRouter('--interval', '0.5', '--count');
    await eventually(() => router.indexCount > 100_000, 30_000);
    isBusy = false;
    await live;
    const isRenewed = (): boolean => relay.status().ranks[0]?.publisher_id !== before;
    const isWhole = (): boolean => router.indexCount === liveBlocks(relay);
    // Whether output had to wait is a matter of the machine; if so, the source is announced anew.
    await eventually(() => isWhole() && isRenewed(), 8000);
    await eventually(isWhole, 10_000);
    expect(router.indexCount).toBe(liveBlocks(relay));
  });
});
