/**
 * Relay, worker and router, each replaced while a real engine goes on: the router that is there in the end
 * holds what the relay holds, and the relay what the engine did.
 */
import { describe, expect, test } from 'vitest';
import type { RelayPages } from '../support/relay-pages.ts';
import { canRunTrials, EngineTrial } from './engine-trial.ts';
import { emptyRegistry } from './places.ts';
import { answersOf, blocksOf, pause, until } from './router-trial.ts';

async function startTrial(seconds: number): Promise<EngineTrial> {
  const folder = `--discovery-dir=${emptyRegistry()}`;
  const place = ['--discovery=file', folder, '--namespace=replaced', '--event-plane=zmq'];
  const relayFlags = ['--plane-endpoint=tcp://127.0.0.1:0'];
  return EngineTrial.start({ place, seconds, relayFlags });
}

async function workerIdOf(relay: RelayPages): Promise<string | null> {
  return (await relay.status()).ranks[0]?.worker_id ?? null;
}

describe.skipIf(!canRunTrials())('under traffic', () => {
  test('a relay that is killed and started again tells the router all that the engine holds', async () => {
    const trial = await startTrial(8);
    await trial.startWorker();
    const first = await trial.startRelay();
    const router = await trial.startRouter(first);
    trial.begin();
    await pause(2000);
    expect((await blocksOf(router)).length).toBeGreaterThan(0);
    first.kill('SIGKILL');
    await first.exited;
    await pause(500);
    const second = await trial.startRelay();
    await trial.expectSame(router, second);
    // What the first one left behind is no second source for the rank.
    expect(await second.metric('kvrelay_discovery_evicted_records_total')).toBeGreaterThan(0);
  });

  test.each(['stopped', 'killed'] as const)(
    'a worker that is %s is followed by its successor, under the new id',
    async (how) => {
      const trial = await startTrial(how === 'stopped' ? 8 : 20);
      const first = await trial.startWorker();
      const relay = await trial.startRelay();
      const router = await trial.startRouter(relay);
      const before = await workerIdOf(relay);
      trial.begin();
      await pause(2000);
      expect((await blocksOf(router)).length).toBeGreaterThan(0);
      await (how === 'stopped' ? first.stop() : first.kill());
      await trial.startWorker();
      await until(async () => ![null, before].includes(await workerIdOf(relay)));
      await trial.expectSame(router, relay);
      expect(await answersOf(relay, 'tree_dump')).toBe(2);
    },
  );

  test('a router that is killed is followed by another, which is told everything', async () => {
    const trial = await startTrial(8);
    await trial.startWorker();
    const relay = await trial.startRelay();
    const first = await trial.startRouter(relay);
    trial.begin();
    await pause(2000);
    expect((await blocksOf(first)).length).toBeGreaterThan(0);
    await first.kill();
    await pause(500);
    const second = await trial.startRouter(relay);
    await trial.expectSame(second, relay);
    expect(await answersOf(relay, 'tree_dump')).toBe(2);
  });
});
