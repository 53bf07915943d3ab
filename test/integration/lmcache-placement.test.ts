/** Chunks of LMCache at the router: an engine, a server's stream and a ZMQ plane around one worker. */
import { expect, test } from 'vitest';
import type { SourceStatus } from '../../src/status/status-source.ts';
import type { Worker } from '../../src/worker.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { removedRecord, storedRecord } from '../support/lmcache-stream.ts';
import { LmcacheStreamStub } from '../support/lmcache-stream-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import type { PublishedEvent } from '../support/published-events.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { Clr, St } from '../support/trials.ts';

const A = Buffer.alloc(32, 0xa);
const B = Buffer.alloc(32, 0xb);
const TOKENS = [1, 2, 3, 4, 5, 6, 7, 8];

class ChunkTrial {
  readonly server: LmcacheStreamStub;
  readonly worker: Worker;
  readonly #rig: SocketTrial;

  private constructor(server: LmcacheStreamStub, rig: SocketTrial) {
    this.server = server;
    this.worker = rig.worker;
    this.#rig = rig;
  }

  static async start(...flags: string[]): Promise<ChunkTrial> {
    const server = await LmcacheStreamStub.start();
    const stream = [`--lmcache-stream=${server.endpoint}`, '--lmcache-model=m'];
    const rig = await SocketTrial.start({ flags: [...stream, ...flags] });
    await server.subscribed();
    return new ChunkTrial(server, rig);
  }

  engine(...events: unknown[]): Promise<void> {
    return this.#rig.sendEvents(...events);
  }

  get published(): PublishedEvent[] {
    return this.#rig.events();
  }

  outputs(count: number): Promise<string[]> {
    return this.#rig.wholeOutput(count);
  }

  get source(): SourceStatus {
    return this.worker.status().sources[0] as SourceStatus;
  }
}

test('a chunk is placed in the tier of L1 under the names of the engine, and goes', async () => {
  const trial = await ChunkTrial.start(
    '--lmcache-stream-instance=5',
    '--lmcache-stream-max-events=9',
  );
  expect(trial.server.requests).toEqual([[5, 'm', 0, 9]]);
  await trial.engine(St([101, 102], { tokens: TOKENS }));
  await trial.outputs(1);
  await trial.server.send([storedRecord(1, A, null, TOKENS), storedRecord(2, B, A, TOKENS)]);
  const output = await trial.outputs(2);
  const third = trial.published[1]?.hashes.slice(2).join();
  expect(output[1]).toBe(`S#2(∅→101,102,${third})@host_pinned`);
  expect(trial.published[1]?.blocks.map(({ tokensHash }) => tokensHash)).toEqual(
    [0, 0].flatMap(() => trial.published[0]?.blocks.map(({ tokensHash }) => tokensHash)),
  );
  await trial.server.send([removedRecord(3, [A, B])]);
  expect((await trial.outputs(3))[2]).toBe(`R#3(101,102,${third})@host_pinned`);
  expect(trial.source.placement).toEqual({
    pattern: 'chunks',
    storage_tier: 'host_pinned',
    chunks: 2,
    placed_blocks: 0,
    unplaced: {
      unknown_tokens: 0,
      unknown_parent: 0,
      other_model: 0,
      chunk_size: 0,
      images: 0,
      salt: 0,
      conflict: 0,
      no_room: 0,
    },
  });
});

test('a name that the engine shows later takes the place of the first one, at once', async () => {
  const trial = await ChunkTrial.start('--lmcache-l1-tier=external');
  await trial.server.send([storedRecord(1, A, null, TOKENS)]);
  const [first] = await trial.outputs(1);
  expect(first).toMatch(/^S#1\(∅→\d+,\d+\)@external$/);
  await trial.engine(St([101, 102], { tokens: TOKENS }));
  const output = await trial.outputs(4);
  const [old] = trial.published;
  expect(output.slice(1)).toEqual([
    'S#2(∅→101,102)',
    `R#3(${old?.hashes.join()})@external`,
    'S#4(∅→101,102)@external',
  ]);
});

test('after a clear of the rank what L1 holds is published again', async () => {
  const trial = await ChunkTrial.start();
  await trial.server.send([storedRecord(1, A, null, TOKENS)]);
  await trial.outputs(1);
  await trial.engine(Clr);
  const output = await trial.outputs(3);
  expect(output[1]).toBe('X#2');
  expect(output[2]).toBe(output[0]?.replace('#1', '#3'));
});

test('a loss takes all of it from the router, as removes and never as a clear', async () => {
  const trial = await ChunkTrial.start();
  await trial.server.send([storedRecord(1, A, null, TOKENS), storedRecord(2, B, A, TOKENS)]);
  await trial.outputs(1);
  await trial.server.send([], { lost: true });
  const output = await trial.outputs(2);
  expect(output[1]).toMatch(/^R#2\((\d+,){3}\d+\)@host_pinned$/);
  expect(trial.source.counters).toMatchObject({ lost_messages: 1, invalidated_objects: 2 });
});

test('chunks of another size are objects alone, and the page says why', async () => {
  const trial = await ChunkTrial.start();
  await trial.server.send([storedRecord(1, A, null, [1, 2, 3])]);
  expect(await eventually(() => trial.source.objects === 1)).toBe(true);
  expect(trial.source.placement).toMatchObject({ placed_blocks: 0, unplaced: { chunk_size: 1 } });
  const metrics = await (await fetch(`${trial.worker.httpUrl}/metrics`)).text();
  const refused = parseExposition(metrics).filter(
    ({ name, labels }) => name === 'kvrelay_chunks_refused_total' && labels.reason === 'chunk_size',
  );
  expect(refused.map(({ value }) => value)).toEqual([1]);
  expect(trial.published).toEqual([]);
});

test('chunks of L1 in the stream of the engine itself are left to the server', async () => {
  const trial = await ChunkTrial.start();
  const chunk = { medium: 'CPU', block_size: 8, token_ids: TOKENS, type: 'BlockStored' };
  await trial.engine({ ...chunk, block_hashes: [A], parent_block_hash: null });
  await trial.engine(St([101]));
  expect(await trial.outputs(1)).toEqual(['S#1(∅→101)']);
});

test('what is held is listed with its model, and tokens are not', async () => {
  const trial = await ChunkTrial.start();
  await trial.server.send([storedRecord(1, A, null, TOKENS)]);
  expect(await eventually(() => trial.source.objects === 1)).toBe(true);
  const text = await (await fetch(`${trial.worker.httpUrl}/api/objects`)).text();
  expect(JSON.parse(text)).toEqual({
    source: 'lmcache',
    backend_id: 'l1',
    tenant_id: 'm',
    object_key: A.toString('hex'),
    media: ['cpu'],
    model_name: 'm',
    block_size: 8,
  });
});
