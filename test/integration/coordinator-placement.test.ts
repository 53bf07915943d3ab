/** Chunks of coordinator batches at the router: an engine, posts of two servers and a ZMQ plane around one worker. */
import { expect, test } from 'vitest';
import { bodyOf, type WireFields, wireBatch, wireEntry } from '../support/cache-batches.ts';
import { eventually } from '../support/plane-collector.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { Clr, St } from '../support/trials.ts';

const TOKENS = [1, 2, 3, 4, 5, 6, 7, 8];
const POOL = { tier: 'l2', backend: 's3', shared: true };
const chunk = wireEntry('a', { model_name: 'm', token_ids: TOKENS, token_offset: 0 });

async function start(...flags: string[]) {
  const listen = '--lmcache-coordinator-listen=127.0.0.1:0';
  const rig = await SocketTrial.start({ flags: [listen, ...flags] });
  const { worker } = rig;
  return {
    worker,
    published: () => rig.events(),
    engine: (...events: unknown[]) => rig.sendEvents(...events),
    post: (...batches: readonly WireFields[]) =>
      fetch(`${worker.status().sources[0]?.endpoint}/events`, {
        method: 'POST',
        body: bodyOf(...batches),
      }),
    outputs: (count: number) => rig.wholeOutput(count),
    match: async (): Promise<unknown> => {
      const asked = { method: 'POST', body: JSON.stringify({ tokens: TOKENS }) };
      const answer = await fetch(`${worker.httpUrl}/api/match`, asked);
      return ((await answer.json()) as { ranks: unknown[] }).ranks[0];
    },
  };
}

const OWN = ['--lmcache-instance=mp-1', '--lmcache-model=m'];
const none = { device: 0, host_pinned: 0, disk: 0, external: 0 };

test("chunks of the worker's own server and of its pool are placed by tier, under the engine's names, and go", async () => {
  const trial = await start(...OWN, '--lmcache-l2-tier=external');
  await trial.engine(St([101, 102], { tokens: TOKENS }));
  await trial.outputs(1);
  await trial.post(wireBatch(1, { instance_id: 'mp-2', entries: [chunk] }));
  await trial.post(wireBatch(1, { entries: [chunk] }), wireBatch(2, { ...POOL, entries: [chunk] }));
  const output = await trial.outputs(3);
  expect(output.slice(1)).toEqual(['S#2(∅→101,102)@host_pinned', 'S#3(∅→101,102)@external']);
  expect(trial.worker.status().sources[0]?.placement).toMatchObject({
    placed_blocks: 4,
    chunks: 1,
  });
  await trial.engine(Clr);
  const again = await trial.outputs(6);
  expect(again[3]).toBe('X#4');
  expect(again.slice(4).every((line) => line.startsWith('S#'))).toBe(true);
  expect(await trial.match()).toMatchObject({ blocks: { ...none, host_pinned: 2 } });
  await trial.post(wireBatch(9));
  const gone = await trial.outputs(8);
  expect(gone.slice(6).every((line) => /^R#\d\(101,102\)@/.test(line))).toBe(true);
  expect(await trial.match()).toMatchObject({ blocks: none });
});

test('without the name of its own server a worker has objects alone', async () => {
  const trial = await start();
  await trial.post(wireBatch(1, { entries: [chunk] }));
  expect(await eventually(() => trial.worker.status().sources[0]?.objects === 1)).toBe(true);
  await trial.engine(St([101]));
  expect(await trial.outputs(1)).toEqual(['S#1(∅→101)']);
  expect(trial.worker.status().sources[0]?.placement).toBeNull();
});
