/**
 * Whatever bytes come: nothing throws, the stream goes on, and each message is either a batch or one
 * count under a fixed label.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { totalOf } from '../../src/metrics/counts.ts';
import { framesOf, InProcessRelay } from '../support/in-process-relay.ts';
import { fixedSeed } from '../support/properties.ts';
import {
  PLAIN_SETTINGS,
  pipelineConfigOf,
  readScenarios,
  SCENARIO_FILES,
} from '../support/scenarios.ts';

const captures: Buffer[] = SCENARIO_FILES.flatMap((file) =>
  readScenarios(file).flatMap(({ input }) =>
    input.flatMap((step) =>
      step.frames?.length === 3 ? [framesOf(step.frames)[2] as Buffer] : [],
    ),
  ),
).filter((payload) => payload.length > 0 && payload.length < 4096);

const good = framesOf([
  '',
  '0000000000000001',
  '93cb3ff00000000000009197ab426c6f636b53746f72656491cd0384c09401020304' + '04c0a347505500',
]);

/** Pushes what may be bad, then a good batch; says how the first one ended. */
function outcome(frames: Uint8Array[]): 'batch' | 'malformed' {
  const relay = new InProcessRelay(pipelineConfigOf(PLAIN_SETTINGS));
  relay.push(frames);
  const malformed = totalOf(relay.metrics.malformed);
  const received = totalOf(relay.metrics.received);
  expect(malformed).toBeLessThanOrEqual(1);
  if (malformed === 1) expect(received).toBe(0);
  expect(totalOf(relay.metrics.accepted) + filteredBy(relay)).toBe(received);

  relay.push(good);
  expect(totalOf(relay.metrics.malformed)).toBe(malformed);
  expect(totalOf(relay.metrics.received)).toBe(received + 1);
  relay.stop();
  return malformed === 1 ? 'malformed' : 'batch';
}

function filteredBy({ metrics }: InProcessRelay): number {
  return Object.values(metrics.filtered).reduce((sum, reasons) => sum + totalOf(reasons), 0);
}

test('random frames', () => {
  const frames = fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 5 });
  const seen = new Set<string>();
  fc.assert(
    fc.property(frames, (message) => void seen.add(outcome(message))),
    { ...fixedSeed, numRuns: fixedSeed.numRuns * 10 },
  );
  expect(seen).toContain('malformed');
});

/** Nearly a batch: random bytes behind a right beginning get further into the reader. */
test('random bytes behind a batch header', () => {
  const begin = fc.constantFrom('93', '93cb3ff000000000000091', '93c09197ab426c6f636b53746f726564');
  const payload = fc.tuple(begin, fc.uint8Array({ maxLength: 80 }));
  fc.assert(
    fc.property(payload, ([head, tail]) => {
      outcome([Buffer.alloc(0), Buffer.alloc(8), Buffer.concat([Buffer.from(head, 'hex'), tail])]);
    }),
    { ...fixedSeed, numRuns: fixedSeed.numRuns * 10 },
  );
});

test('mutated captures', () => {
  const mutation = fc.oneof(
    fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) }),
    fc.record({ cutAt: fc.nat() }),
    fc.record({ insertAt: fc.nat(), bytes: fc.uint8Array({ minLength: 1, maxLength: 6 }) }),
  );
  const seen = { batch: 0, malformed: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...captures),
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      (capture, mutations) => {
        let payload = Buffer.from(capture);
        for (const change of mutations) payload = mutated(payload, change);
        seen[outcome([Buffer.alloc(0), Buffer.alloc(8), payload])]++;
      },
    ),
    { ...fixedSeed, numRuns: fixedSeed.numRuns * 20 },
  );
  // A property that only ever saw one side would prove little.
  expect(seen.batch).toBeGreaterThan(100);
  expect(seen.malformed).toBeGreaterThan(100);
});

type Mutation =
  | { at: number; byte: number }
  | { cutAt: number }
  | { insertAt: number; bytes: Uint8Array };

function mutated(payload: Buffer, change: Mutation): Buffer<ArrayBuffer> {
  const copy = Buffer.from(payload);
  if ('cutAt' in change) return copy.subarray(0, change.cutAt % (copy.length + 1));
  if ('at' in change) {
    if (copy.length > 0) copy[change.at % copy.length] = change.byte;
    return copy;
  }
  const at = change.insertAt % (copy.length + 1);
  return Buffer.concat([copy.subarray(0, at), change.bytes, copy.subarray(at)]);
}
