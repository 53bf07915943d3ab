/**
 * Removes that are read as one against the same removes read one by one: messages and counts must be equal. What
 * keeps two removes apart is the marker of their hash, u64 or i64 of the same bits, which is the same hash.
 */
import * as fc from 'fast-check';
import { Packr } from 'msgpackr';
import { expect, test } from 'vitest';
import type { PipelineConfig } from '../../src/pipeline.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import { tokensFrom } from '../support/batches.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { fixedSeed } from '../support/properties.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';

const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true });
const RUNS = { ...fixedSeed, numRuns: fixedSeed.numRuns * 2 };
/** Tokens a block, and blocks a chunk of the host tier. */
const BLOCK = 4;

type Step =
  | { kind: 'store'; hashes: number[]; parent: number | null; medium: string; salt: string | null }
  | { kind: 'chunk'; hashes: number[]; factor: number }
  | { kind: 'removes'; hashes: number[]; medium: string; group: number | null; isMap: boolean }
  | { kind: 'clear' };

const hash = fc.nat(30);
const hashes = fc.uniqueArray(hash, { minLength: 1, maxLength: 6 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('store' as const),
    hashes,
    parent: fc.option(hash),
    medium: fc.constantFrom('GPU', 'CPU', 'DISK'),
    salt: fc.constantFrom(null, null, 'a', 'b'),
  }),
  fc.record({ kind: fc.constant('chunk' as const), hashes, factor: fc.constantFrom(2, 3) }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('removes' as const),
      hashes: fc.array(hash, { minLength: 1, maxLength: 24 }),
      medium: fc.constantFrom('GPU', 'CPU', 'CPU', 'DISK', 'TAPE'),
      group: fc.constantFrom(null, null, 0, 7),
      isMap: fc.boolean(),
    }),
  },
  fc.record({ kind: fc.constant('clear' as const) }),
);
const history = fc.array(fc.array(step, { maxLength: 8 }), { minLength: 1, maxLength: 4 });

const wide = (index: number): bigint => 2n ** 63n + BigInt(index);

/** Events of a step, packed; `apart`: no two neighbours are bytes that differ in their hash alone. */
function eventsOf(step: Step, apart: boolean): Buffer[] {
  if (step.kind === 'clear') return [packr.pack({ type: 'AllBlocksCleared' })];
  if (step.kind === 'store' || step.kind === 'chunk') {
    const factor = step.kind === 'chunk' ? step.factor : 1;
    return [
      packr.pack({
        type: 'BlockStored',
        block_hashes: step.hashes.map(wide),
        parent_block_hash: step.kind === 'chunk' || step.parent === null ? null : wide(step.parent),
        token_ids: tokensFrom(step.hashes[0] ?? 0, step.hashes.length * BLOCK * factor),
        block_size: BLOCK * factor,
        medium: step.kind === 'chunk' ? 'CPU' : step.medium,
        ...(step.kind === 'store' && step.salt !== null && { cache_salt: step.salt }),
      }),
    ];
  }
  return step.hashes.map((index, at) => {
    const event = step.isMap
      ? packr.pack({
          type: 'BlockRemoved',
          block_hashes: [wide(index)],
          medium: step.medium,
          group_idx: step.group,
        })
      : packr.pack(['BlockRemoved', [wide(index)], step.medium, step.group]);
    const digits = Buffer.alloc(9);
    digits[0] = 0xcf;
    digits.writeBigUInt64BE(wide(index), 1);
    const marker = event.indexOf(digits);
    if (apart && at % 2 === 1) event[marker] = 0xd3;
    return event;
  });
}

interface Outcome {
  readonly published: unknown;
  readonly metrics: unknown;
}

function play(batches: Step[][], config: PipelineConfig, apart: boolean): Outcome {
  const relay = new InProcessRelay(config);
  for (const [sequence, steps] of batches.entries()) {
    const events = steps.flatMap((one) => eventsOf(one, apart));
    const head = Buffer.from([0x93, 0, 0xdd, 0, 0, 0, 0]);
    head.writeUInt32BE(events.length, 3);
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(BigInt(sequence));
    relay.push([Buffer.alloc(0), number, Buffer.concat([head, ...events, Buffer.from([0xc0])])]);
    relay.advance(3);
  }
  relay.stop();
  const published = relay.published.map(({ payload }) => payload.toString('hex'));
  // Latency is of the real clock.
  const { relayLatencySeconds: _, ...metrics } = JSON.parse(JSON.stringify(relay.metrics));
  return { published, metrics };
}

function configOf(compat: Compat, maxBatchBlocks: number, batchingTimeoutMs: number) {
  return { ...pipelineConfigOf(PLAIN_SETTINGS, compat), maxBatchBlocks, batchingTimeoutMs };
}

test.each<[Compat, number, number]>([
  ['strict', 128, 0],
  ['strict', 5, 0],
  ['strict', 128, 10],
  ['safe', 128, 0],
  ['safe', 5, 0],
  ['safe', 1, 0],
  ['safe', 7, 10],
])('%s, a cap of %i, a timeout of %i ms', (compat, maxBatchBlocks, timeoutMs) => {
  fc.assert(
    fc.property(history, (batches) => {
      const joined = play(batches, configOf(compat, maxBatchBlocks, timeoutMs), false);
      const apart = play(batches, configOf(compat, maxBatchBlocks, timeoutMs), true);
      expect(joined).toEqual(apart);
    }),
    RUNS,
  );
});

test.each<[Compat, number]>([
  ['strict', 128],
  ['safe', 100_000],
])('%s: more in one batch than a run can count, with a cap of %i', (compat, maxBatchBlocks) => {
  const hashes = Array.from({ length: 140_000 }, (_, at) => at % 100_000);
  const removes = { kind: 'removes' as const, hashes, group: null, isMap: false };
  const batches: Step[][] = [
    [{ kind: 'store', hashes: [5, 6, 7, 8], parent: null, medium: 'GPU', salt: null }],
    [{ kind: 'store', hashes: [7, 8], parent: 6, medium: 'GPU', salt: null }],
    [{ ...removes, medium: 'GPU' }],
    [{ ...removes, medium: 'TAPE' }],
  ];
  const joined = play(batches, configOf(compat, maxBatchBlocks, 0), false);
  expect(joined).toEqual(play(batches, configOf(compat, maxBatchBlocks, 0), true));
});
