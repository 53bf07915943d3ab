import { describe, expect, test } from 'vitest';
import { BlockIndex } from '../../src/indexer/block-index.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { applyTo, dumpOf, rowsOf } from '../support/held-blocks.ts';
import { fixedSeed } from '../support/properties.ts';
import { type ModelEvent, RouterIndexModel } from '../support/router-index-model.ts';
import {
  modelEvent,
  type RouterStream,
  randomStream,
  seededRandom,
  sortedRows,
  wireEvent,
} from '../support/router-streams.ts';
import { readJsonLines } from '../support/vectors.ts';

const VECTORS = readJsonLines<RouterStream>('dynamo/router-index.jsonl');

function indexOf(events: readonly ModelEvent[], maxBlocks = 1_000_000): BlockIndex {
  const index = new BlockIndex(maxBlocks, new RelayMetrics());
  for (const event of events) applyTo(index, event);
  return index;
}

describe('what a router of 1.6.1 holds', () => {
  test.each(VECTORS)('after $name', ({ events, blocks = [] }) => {
    const stream = events.map(modelEvent);
    const index = indexOf(stream);
    const rows = rowsOf(dumpOf(index));
    expect(sortedRows(rows)).toEqual(sortedRows(blocks));
    expect(index.size).toBe(blocks.length);
    const model = new RouterIndexModel();
    for (const event of stream) model.apply(event);
    expect(sortedRows(model.rows())).toEqual(sortedRows(blocks));
    index.free();
  });
});

test.each([0, 0.02, 0.1, 0.5])(
  'BlockIndex holds what the model holds after each event of random streams, %d of the hashes wild',
  (wildness) => {
    const random = seededRandom(fixedSeed.seed + Math.round(wildness * 1000));
    for (let run = 0; run < fixedSeed.numRuns; run++) {
      const stream = randomStream(random, { maxEvents: run % 10 === 0 ? 200 : 40, wildness });
      const metrics = new RelayMetrics();
      const index = new BlockIndex(1_000_000, metrics);
      const model = new RouterIndexModel();
      for (const [at, event] of stream.entries()) {
        applyTo(index, event);
        model.apply(event);
        if (model.isAmbiguous) break;
        const events = dumpOf(index);
        const rows = rowsOf(events);
        const held = { rows: sortedRows(rows), after: told(stream, at) };
        expect(held).toEqual({ rows: sortedRows(model.rows()), after: held.after });
        expect(index.size).toBe(rows.length);
        // Wild enough, a router takes a block under a place that it does not hold, and dumps it so.
        if (wildness < 0.5) expectParentsFirst(events);
      }
      index.free();
      expect(metrics.liveBlocks).toEqual({ device: 0, host_pinned: 0, disk: 0, external: 0 });
    }
  },
);

/** The stream up to an event, for whoever has to find out what went wrong. */
function told(stream: readonly ModelEvent[], at: number): string {
  return JSON.stringify(stream.slice(0, at + 1).map(wireEvent));
}

function expectParentsFirst(events: ReturnType<typeof dumpOf>): void {
  const written = new Set<bigint>();
  for (const { tier, parent, hashes } of events) {
    if (tier !== 'device') continue;
    expect(parent === null || written.has(parent)).toBe(true);
    for (const hash of hashes) written.add(hash);
  }
}
