/** Blocks that a store holds, at the router: an engine, a store and a ZMQ plane around one worker. */
import { expect, test } from 'vitest';
import type { Worker } from '../../src/worker.ts';
import { MooncakeMasterStub } from '../support/mooncake-master-stub.ts';
import { eventually } from '../support/plane-collector.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { Clr, Rm, St } from '../support/trials.ts';

/** The key of an object of this block, as vLLM's connector writes it. */
function keyOf(block: number, tensorRank = 0): string {
  const digest = block.toString(16).padStart(64, '0');
  return `Qwen/Qwen3-8B@tp_rank:${tensorRank}@pcp0@dcp0@pp_rank:0@group:0@${digest}`;
}

class PlacementTrial {
  readonly store: MooncakeMasterStub;
  readonly worker: Worker;
  readonly #rig: SocketTrial;

  private constructor(store: MooncakeMasterStub, rig: SocketTrial) {
    this.store = store;
    this.worker = rig.worker;
    this.#rig = rig;
  }

  static async start(...flags: string[]): Promise<PlacementTrial> {
    const store = await MooncakeMasterStub.start();
    const source = [`--mooncake-endpoint=${store.endpoint}`, '--mooncake-key-pattern=vllm'];
    const rig = await SocketTrial.start({ flags: [...source, ...flags] });
    await store.subscribed();
    return new PlacementTrial(store, rig);
  }

  engine(...events: unknown[]): Promise<void> {
    return this.#rig.sendEvents(...events);
  }

  async stores(...keys: string[]): Promise<void> {
    await this.store.publish(...keys.map((key) => this.store.event('stored', key)));
  }

  async drops(...keys: string[]): Promise<void> {
    await this.store.publish(...keys.map((key) => this.store.event('removed', key)));
  }

  outputs(count: number): Promise<string[]> {
    return this.#rig.wholeOutput(count);
  }

  get placement(): object | null | undefined {
    return this.worker.status().sources[0]?.placement;
  }
}

test('a block that the engine has shown and the store holds is placed in its tier, and goes with it', async () => {
  const trial = await PlacementTrial.start();
  await trial.engine(St([101, 102]));
  await trial.outputs(1);
  await trial.stores(keyOf(102), 'another/convention', keyOf(999));
  expect(await trial.outputs(2)).toEqual(['S#1(∅→101,102)', 'S#2(101→102)@external']);
  await trial.drops(keyOf(102));
  expect((await trial.outputs(3))[2]).toBe('R#3(102)@external');
  expect(trial.placement).toEqual({
    pattern: 'vllm',
    storage_tier: 'external',
    matched_keys: 2,
    unmatched_keys: 1,
    held_blocks: 1,
    placed_blocks: 0,
  });
});

test('a block may be stored before the engine shows it, and stays when the engine gives it up', async () => {
  const trial = await PlacementTrial.start('--mooncake-tier', 'disk');
  await trial.stores(keyOf(101), keyOf(102));
  expect(await eventually(() => trial.worker.status().sources[0]?.objects === 2)).toBe(true);
  await trial.engine(St([101, 102]));
  expect(await trial.outputs(2)).toEqual(['S#1(∅→101,102)', 'S#2(∅→101,102)@disk']);
  await trial.engine(Rm([102, 101]));
  expect((await trial.outputs(3))[2]).toBe('R#3(102,101)');
});

test('a block of several objects is held while one of them is', async () => {
  const trial = await PlacementTrial.start();
  await trial.engine(St([101]));
  await trial.stores(keyOf(101, 0), keyOf(101, 1));
  await trial.outputs(2);
  await trial.drops(keyOf(101, 0));
  expect(await eventually(() => trial.worker.status().sources[0]?.objects === 1)).toBe(true);
  expect(trial.placement).toMatchObject({ held_blocks: 1, placed_blocks: 1 });
  await trial.stores(keyOf(101, 0));
  await trial.drops(keyOf(101, 0), keyOf(101, 1));
  expect((await trial.outputs(3)).slice(1)).toEqual(['S#2(∅→101)@external', 'R#3(101)@external']);
});

test('after a clear of the rank what the store holds is published again', async () => {
  const trial = await PlacementTrial.start();
  await trial.engine(St([101, 102]), St(103, { parent: 102 }));
  await trial.stores(keyOf(103), keyOf(101));
  await trial.outputs(3);
  await trial.engine(Clr);
  const output = await trial.outputs(6);
  expect(output.slice(3)).toEqual(['X#4', 'S#5(∅→101)@external', 'S#6(102→103)@external']);
});

test('what the store gives up after a loss leaves the router, as removes and never as a clear', async () => {
  const trial = await PlacementTrial.start();
  await trial.engine(St([101]), St([201]));
  await trial.stores(keyOf(101), keyOf(201));
  const before = (await trial.outputs(4)).length;
  trial.store.lose(1);
  await trial.stores(keyOf(201));
  const after = (await trial.outputs(before + 1)).slice(before);
  expect(after).toEqual([`R#${before + 1}(101)@external`]);
});

test('a hash that the engine shows with other tokens is ambiguous: nothing is placed', async () => {
  const trial = await PlacementTrial.start();
  await trial.stores(keyOf(101));
  await trial.engine(St(101, { tokens: [1, 2, 3, 4] }));
  await trial.outputs(2);
  await trial.engine(St(101, { tokens: [5, 6, 7, 8] }));
  expect((await trial.outputs(4)).slice(2)).toEqual(['S#3(∅→101)', 'R#4(101)@external']);
});
