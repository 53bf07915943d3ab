/** Dumps of a large index while events go on: the relay's process serves both, and neither waits for long. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseExposition } from '../metrics/exposition.ts';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { FakeRouter } from '../support/fake-router.ts';
import { eventually } from '../support/plane-collector.ts';
import { RunProcess } from '../support/run-process.ts';

const WORKER = 0x1234n;
const CHAINS = 400;
const CHAIN_BLOCKS = 500;
const ROUTERS = 20;

async function value(relay: RunProcess, name: string, label?: string): Promise<number> {
  const text = await (await fetch(`${relay.httpUrl}/metrics`)).text();
  const sample = parseExposition(text).find(
    (one) =>
      one.name === name && (label === undefined || Object.values(one.labels).includes(label)),
  );
  return sample?.value ?? Number.NaN;
}

const CODECS = ['msgpack', 'json'] as const;

test.each(CODECS)('G13, M7: 20 routers dump 200,000 blocks at once in %s', async (codec) => {
  const directory = mkdtempSync(join(tmpdir(), 'kvrelay-dump-'));
  const engine = await EngineStub.start();
  const relay = new RunProcess([
    'run',
    '--block-size=4',
    `--engine-endpoint=${engine.endpoint}`,
    '--event-plane=zmq',
    '--plane-endpoint=tcp://127.0.0.1:0',
    '--http=127.0.0.1:0',
    '--discovery=file',
    `--discovery-dir=${directory}`,
    `--worker-id=${WORKER}`,
  ]);
  const router = await FakeRouter.start();
  onTestFinished(async () => {
    await relay.stop();
    await router.close();
    engine.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await relay.ready();
  await engine.subscribed();
  let sequence = 0;
  const store = async (first: number, blocks: number): Promise<void> => {
    const hashes = Array.from({ length: blocks }, (_, index) => first + index);
    const event = storeEvent(hashes, null, { token_ids: tokensFrom(first * 4, blocks * 4) });
    await engine.send(batchFrames(batch([event]), sequence++));
  };
  for (let chain = 0; chain < CHAINS; chain++) await store(1 + chain * CHAIN_BLOCKS, CHAIN_BLOCKS);
  const all = CHAINS * CHAIN_BLOCKS;
  for (let tries = 0; tries < 200; tries++) {
    if ((await value(relay, 'kvrelay_live_blocks', 'device')) === all) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const status = (await (await fetch(`${relay.httpUrl}/api/status`)).json()) as {
    recovery: { endpoint: string };
    ranks: { publisher_id: string }[];
  };
  const hex = BigInt(status.ranks[0]?.publisher_id ?? 0).toString(16);
  const path = `${WORKER.toString(16)}/dynamo/backend/worker_kv_query_source_${hex}`;
  const port = Number(status.recovery.endpoint.split(':')[1]);
  await value(relay, 'kvrelay_event_loop_lag_seconds');

  let isBusy = true;
  const live = (async (): Promise<void> => {
    for (let first = all + 1; isBusy; first++) {
      await store(first, 1);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const asked = await Promise.all(
    Array.from({ length: ROUTERS }, () => router.ask(port, path, { worker_id: WORKER }, codec)),
  );
  isBusy = false;
  await live;
  const lag = await value(relay, 'kvrelay_event_loop_lag_seconds');
  // Measured: 20 to 50 ms, of which the clock's own 10; other processes take their share here too.
  expect(lag).toBeLessThan(0.25);
  expect(await value(relay, 'kvrelay_output_hold_seconds_sum')).toBeLessThan(2.5);
  expect(asked.map(({ acknowledgement }) => acknowledgement)).toEqual(asked.map(() => ''));
  expect(await eventually(() => router.responses.every(({ isClosed }) => isClosed))).toBe(true);
  expect(await value(relay, 'kvrelay_recovery_queries_total', 'tree_dump')).toBe(ROUTERS);
});
