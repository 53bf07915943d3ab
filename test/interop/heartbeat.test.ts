/** A stock router that lost the last message of a burst has everything again soon after the heartbeat. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { emptyRegistry } from './places.ts';
import { expectSame, pause, RelayHere, startPeer } from './router-trial.ts';

const CHAIN_BLOCKS = 5;
/** The first beat comes after half a second; the rest is the router's query, and this machine's. */
const SOON_MS = 3000;

describe.skipIf(!hasDynamo())('heartbeat', () => {
  test('a stock router whose last message was dropped equals the dump soon after the beat', async () => {
    const broker = await ZmqBroker.start();
    onTestFinished(() => broker.close());
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const place = [
      '--discovery=file',
      `--discovery-dir=${emptyRegistry()}`,
      '--namespace=interop-beat',
      '--block-size=4',
      '--event-plane=zmq',
      `--zmq-broker=${broker.url}`,
    ];
    await startPeer('dynamo_worker', place);
    const router = await startPeer('dynamo_router', place);
    const relay = await RelayHere.start([...place, `--engine-endpoint=${engine.endpoint}`]);
    await engine.subscribed();
    await relay.ready();

    let chains = 0;
    const storeChain = async (): Promise<void> => {
      const first = chains * CHAIN_BLOCKS + 1;
      const hashes = Array.from({ length: CHAIN_BLOCKS }, (_, index) => first + index);
      const fields = { token_ids: tokensFrom(first * 4, CHAIN_BLOCKS * 4) };
      await engine.send(batchFrames(batch([storeEvent(hashes, null, fields)]), chains++));
    };
    for (let count = 0; count < 10; count++) await storeChain();
    await relay.passed(9);
    expect(await expectSame(router, relay)).toHaveLength(10 * CHAIN_BLOCKS);
    // A query that is still under way from joining would bring the next message along.
    await pause(1000);

    let dropped = 0;
    // What routers tell each other goes over the broker too.
    broker.drops = ([topic]) => {
      const isLost = dropped === 0 && topic?.toString().endsWith('.kv-events') === true;
      if (isLost) dropped++;
      return isLost;
    };
    await storeChain();
    expect(await eventually(() => dropped === 1)).toBe(true);
    const lostMs = performance.now();
    expect(await expectSame(router, relay, SOON_MS)).toHaveLength(11 * CHAIN_BLOCKS);
    expect(performance.now() - lostMs).toBeGreaterThan(300);
    expect(relay.worker.status().ranks[0]?.counters.heartbeats).toBeGreaterThan(0);
  });
});
