/** A stock router that lost the last message of a burst has everything again soon after the heartbeat. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { configOf } from '../support/worker-config.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import { DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { emptyRegistry } from './stock-trial.ts';

const CHAIN_BLOCKS = 5;
/** The first beat comes after half a second; the rest is the router's query, and this machine's. */
const SOON_MS = 3000;

/** Rows of `/api/dump` as the router shows its own. */
async function dumped(url: string | null): Promise<string[]> {
  const lines = (await (await fetch(`${url}/api/dump`)).text()).split('\n').slice(0, -1);
  return lines.map((line) => Object.values(JSON.parse(line)).join(' ')).sort();
}

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
    const startPeer = async (program: 'dynamo_worker' | 'dynamo_router'): Promise<DynamoPeer> => {
      const peer = await DynamoPeer.start(program, place);
      onTestFinished(() => peer.stop());
      return peer;
    };
    await startPeer('dynamo_worker');
    const router = await startPeer('dynamo_router');
    const own = ['--engine-endpoint', engine.endpoint, '--http', '127.0.0.1:0'];
    const logger = createLogger({ level: 'silent', format: 'json' });
    const relay = createWorker(configOf(...place, ...own), { logger });
    onTestFinished(() => relay.stop());
    await relay.start();
    await engine.subscribed();
    expect(await eventually(() => relay.ready().ready, 10_000)).toBe(true);

    let chains = 0;
    const storeChain = async (): Promise<void> => {
      const first = chains * CHAIN_BLOCKS + 1;
      const hashes = Array.from({ length: CHAIN_BLOCKS }, (_, index) => first + index);
      const fields = { token_ids: tokensFrom(first * 4, CHAIN_BLOCKS * 4) };
      await engine.send(batchFrames(batch([storeEvent(hashes, null, fields)]), chains++));
    };
    const held = (): string[] => router.index.map((row) => row.join(' ')).sort();
    for (let count = 0; count < 10; count++) await storeChain();
    expect(await eventually(() => held().length === 10 * CHAIN_BLOCKS)).toBe(true);
    // A query that is still under way from joining would bring the next message along.
    await new Promise((resolve) => setTimeout(resolve, 1000));

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
    const expected = await dumped(relay.httpUrl);
    expect(expected).toHaveLength(11 * CHAIN_BLOCKS);
    await eventually(() => held().length === expected.length, SOON_MS);
    expect(held()).toEqual(expected);
    expect(performance.now() - lostMs).toBeGreaterThan(300);
    expect(relay.status().ranks[0]?.counters.heartbeats).toBeGreaterThan(0);
  });
});
