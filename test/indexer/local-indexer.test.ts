import { describe, expect, test } from 'vitest';
import { SLICING } from '../../src/indexer/dump-builder.ts';
import { LocalIndexer, type LocalIndexerOptions } from '../../src/indexer/local-indexer.ts';
import { arena } from '../../src/kernel/arena.ts';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { EncodedEvents, IndexAnswer } from '../../src/protocol/recovery.ts';
import { RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { placementOf } from '../support/held-blocks.ts';
import { fixedSeed } from '../support/properties.ts';
import {
  consecutiveEventsOf,
  modelEventOf,
  type PublishedEvent,
  shown,
} from '../support/published-events.ts';
import { type ModelEvent, RouterIndexModel } from '../support/router-index-model.ts';
import { randomStream, seededRandom, sortedRows } from '../support/router-streams.ts';

class Source {
  readonly indexer: LocalIndexer;
  readonly model = new RouterIndexModel();
  readonly #encoder = new RouterEventEncoder(42n);
  readonly #buffer = new EncodeBuffer();
  #nextEventId = 1;

  constructor(options: Partial<LocalIndexerOptions> = {}) {
    const bounds = { maxBlocks: 1e6, maxEvents: 8, maxBytes: 1 << 20 };
    const publisher = { events: this.#encoder };
    this.indexer = new LocalIndexer({ publisher, ...bounds, ...options }, new RelayMetrics());
  }

  /** Each event a batch of its own. */
  record(...events: readonly ModelEvent[]): this {
    for (const event of events) {
      arena.reset();
      this.#buffer.reset();
      const placement = placementOf(event, 0);
      const firstEventId = this.#nextEventId++;
      this.#encoder.encode(this.#buffer, placement, firstEventId);
      const ends = [this.#buffer.length];
      this.indexer.record({ events: [placement], firstEventId, encoded: this.#buffer, ends });
      this.model.apply(event);
    }
    return this;
  }

  async ask(start: number | null, end: number | null = null): Promise<IndexAnswer> {
    const pending = this.indexer.answer(start, end);
    await pending.prepare();
    return pending.finish();
  }
}

function root(...hashes: readonly bigint[]): ModelEvent {
  return child(null, ...hashes);
}

function child(parent: bigint | null, ...hashes: readonly bigint[]): ModelEvent {
  const blocks = hashes.map((hash) => ({ blockHash: hash, tokensHash: hash + 1000n }));
  return { type: 'stored', tier: 'device', parent, blocks };
}

function gone(...hashes: readonly bigint[]): ModelEvent {
  return { type: 'removed', tier: 'device', hashes };
}

const CLEARED: ModelEvent = { type: 'cleared' };

function eventsOf({ chunks, count }: EncodedEvents): PublishedEvent[] {
  const events = chunks.flatMap((chunk) => consecutiveEventsOf(chunk));
  expect(events).toHaveLength(count);
  return events;
}

/** The answer in one line: its kind, the events as routers read them, and its numbers. */
function line(answer: IndexAnswer): string {
  const { kind, ...rest } = answer;
  if (!('events' in rest)) return `${kind} ${JSON.stringify(rest)}`;
  return `${kind} ${eventsOf(rest.events).map(shown).join(' ')} last=${rest.lastEventId}`;
}

/** What a router holds that starts empty and applies these events. */
function rowsAfter(events: readonly PublishedEvent[]): string[] {
  const router = new RouterIndexModel();
  for (const event of events) router.apply(modelEventOf(event));
  return sortedRows(router.rows());
}

function rowsOfAnswer(answer: IndexAnswer): string[] {
  if (answer.kind !== 'tree_dump') throw new Error(`not a dump but ${line(answer)}`);
  return rowsAfter(eventsOf(answer.events));
}

describe('answers without an event', () => {
  test.each([
    [null, null, 'tree_dump  last=0'],
    [1, null, 'tree_dump  last=0'],
    [9, 3, 'invalid_range {"startId":9,"endId":3}'],
  ])('start %s, end %s: %s', async (start, end, answer) => {
    expect(line(await new Source().ask(start, end))).toBe(answer);
  });
});

describe('answers with events 3 to 10 kept', () => {
  const source = new Source();
  for (let id = 1n; id <= 10n; id++) source.record(id === 1n ? root(1n) : child(id - 1n, id));
  const newest = 'S#9(8→9) S#10(9→10) last=10';

  test.each([
    [9, null, `events ${newest}`],
    [9, 9, `events ${newest}`],
    [9, 999, `events ${newest}`],
    [10, null, 'events S#10(9→10) last=10'],
    [11, null, 'too_new {"requestedStart":11,"requestedEnd":10,"newestAvailable":10}'],
    [11, 12, 'too_new {"requestedStart":11,"requestedEnd":12,"newestAvailable":10}'],
    [11, 9, 'invalid_range {"startId":11,"endId":9}'],
    [2, 1, 'invalid_range {"startId":2,"endId":1}'],
    [2, null, 'tree_dump S#0(∅→1,2,3,4,5,6,7,8,9,10) last=10'],
    [0, null, 'tree_dump S#0(∅→1,2,3,4,5,6,7,8,9,10) last=10'],
    [null, 5, 'tree_dump S#0(∅→1,2,3,4,5,6,7,8,9,10) last=10'],
  ])('start %s, end %s: %s', async (start, end, answer) => {
    expect(line(await source.ask(start, end))).toBe(answer);
  });

  test('the oldest that is kept', async () => {
    const answer = await source.ask(3);
    expect(answer.kind).toBe('events');
    expect('events' in answer && answer.events.count).toBe(8);
  });
});

describe('a dump', () => {
  test('is followed by the events since, up to half of the buffer; then it is built again', async () => {
    const source = new Source().record(root(1n, 2n));
    expect(line(await source.ask(null))).toBe('tree_dump S#0(∅→1,2) last=1');
    source.record(gone(2n), child(1n, 3n), root(4n), root(5n));
    const tail = 'R#2(2) S#3(1→3) S#4(∅→4) S#5(∅→5)';
    expect(line(await source.ask(null))).toBe(`tree_dump S#0(∅→1,2) ${tail} last=5`);
    source.record(root(6n));
    const answer = await source.ask(null);
    expect(line(answer)).not.toContain('R#');
    expect(rowsOfAnswer(answer)).toEqual(sortedRows(source.model.rows()));
  });

  test('from before a clear is given up', async () => {
    const source = new Source().record(root(1n));
    await source.ask(null);
    expect(line(await source.record(CLEARED, root(2n)).ask(null))).toBe(
      'tree_dump S#0(∅→2) last=3',
    );
  });

  test('answers with what came between prepare() and finish()', async () => {
    const source = new Source().record(root(1n));
    const pending = source.indexer.answer(null, null);
    await pending.prepare();
    source.record(root(2n), gone(1n));
    expect(line(pending.finish())).toBe('tree_dump S#0(∅→1) S#2(∅→2) R#3(1) last=3');
  });

  test('of a small index is built on the spot where a clear outdates the prepared one', async () => {
    const source = new Source().record(root(1n));
    const pending = source.indexer.answer(null, null);
    await pending.prepare();
    source.record(CLEARED, root(2n));
    expect(line(pending.finish())).toBe('tree_dump S#0(∅→2) last=3');
  });

  test('holds the device tier of all before the others, each numbered from 0', async () => {
    const disk: ModelEvent = { ...child(9n, 7n, 8n), tier: 'disk' } as ModelEvent;
    const source = new Source().record(disk, root(1n), child(1n, 2n), child(1n, 3n));
    expect(line(await source.ask(null))).toBe(
      'tree_dump S#0(∅→1) S#1(1→3) S#2(1→2) S#0(9→7)@disk S#1(7→8)@disk last=4',
    );
  });

  test('fails once the indexer is closed', async () => {
    const source = new Source().record(root(1n));
    source.indexer.free();
    const message = 'The index has been closed';
    expect(await source.ask(null)).toEqual({ kind: 'tree_dump_failed', lastEventId: 1, message });
  });
});

/** Roots enough for several slices, in events of 500. */
function manyRoots(count: number): ModelEvent[] {
  return Array.from({ length: count / 500 }, (_, event) => {
    const first = BigInt(event * 500 + 1);
    return root(...Array.from({ length: 500 }, (_, block) => first + BigInt(block)));
  });
}

describe('a dump that is built while events come', () => {
  test('leaves a router with what the source holds, whatever came between two slices', async () => {
    const random = seededRandom(fixedSeed.seed);
    for (let run = 0; run < fixedSeed.numRuns / 4; run++) {
      const stream = randomStream(random, { maxEvents: 300, wildness: 0 });
      const [before, during] = [stream.slice(0, 100), stream.slice(100)];
      let source = new Source();
      const pause = (): Promise<void> => {
        source.record(...during.splice(0, 1 + Math.floor(random() * 9)));
        return Promise.resolve();
      };
      source = new Source({ maxEvents: 1000, slicing: { pause, sliceMs: 0, partBytes: 1 } });
      source.record(...before.filter(({ type }) => type !== 'cleared'));
      expect(rowsOfAnswer(await source.ask(null))).toEqual(sortedRows(source.model.rows()));
    }
  });

  test.each([500n, 1500n, 2500n])('goes on in a chain that branches at %s', async (at) => {
    const hashes = Array.from({ length: 3000 }, (_, index) => BigInt(index + 1));
    let source = new Source();
    let turns = 0;
    const pause = (): Promise<void> => {
      if (turns++ === 1) source.record(child(at, 9001n), gone(2800n));
      return Promise.resolve();
    };
    source = new Source({ slicing: { pause, sliceMs: 0, partBytes: 1 } }).record(root(...hashes));
    const answer = await source.ask(null);
    expect(turns).toBeGreaterThan(2);
    expect(rowsOfAnswer(answer)).toEqual(sortedRows(source.model.rows()));
    expect(rowsOfAnswer(answer)).toHaveLength(2800);
  });

  test('of 300,000 blocks holds the event loop for a slice at a time', { retry: 2 }, async () => {
    let lastMs = 0;
    let longestMs = 0;
    const takeHold = (): void => {
      longestMs = Math.max(longestMs, performance.now() - lastMs);
    };
    const pause = async (): Promise<void> => {
      takeHold();
      await new Promise(setImmediate);
      lastMs = performance.now();
    };
    const slicing = { ...SLICING, pause };
    const source = new Source({ slicing }).record(...manyRoots(300_000));
    const pending = source.indexer.answer(null, null);
    lastMs = performance.now();
    await pending.prepare();
    takeHold();
    expect(longestMs).toBeLessThan(50);
    expect(rowsOfAnswer(pending.finish())).toHaveLength(300_000);
  });

  test('is shared by all who ask meanwhile', async () => {
    let pauses = 0;
    const pause = (): Promise<void> => {
      pauses++;
      return Promise.resolve();
    };
    const alone = new Source({ slicing: { pause, sliceMs: 0, partBytes: 1 << 16 } }).record(
      ...manyRoots(100_000),
    );
    await alone.ask(null);
    const pausesOfOne = pauses;
    pauses = 0;
    const shared = new Source({ slicing: { pause, sliceMs: 0, partBytes: 1 << 16 } }).record(
      ...manyRoots(100_000),
    );
    const answers = await Promise.all([shared.ask(null), shared.ask(null), shared.ask(0)]);
    expect(pausesOfOne).toBeGreaterThan(10);
    expect(pauses).toBe(pausesOfOne);
    for (const answer of answers) expect(rowsOfAnswer(answer)).toHaveLength(100_000);
  });

  test('is whole where another one is made at once while it is built', async () => {
    let pause = (): void => undefined;
    const slicing = { pause: async () => pause(), sliceMs: -1, partBytes: 1 };
    const source = new Source({ slicing }).record(...manyRoots(1000));
    const prepared = source.indexer.answer(null, null);
    await prepared.prepare();
    source.record(CLEARED, ...manyRoots(3000));
    let turns = 0;
    pause = (): void => {
      // Its own dump is void since the clear.
      if (turns++ === 1) prepared.finish();
    };
    expect(rowsOfAnswer(await source.ask(null))).toEqual(sortedRows(source.model.rows()));
    expect(turns).toBeGreaterThan(1);
  });

  test('fails when clears keep coming', async () => {
    let source = new Source();
    const pause = (): Promise<void> => {
      source.record(CLEARED, ...manyRoots(60_000));
      return Promise.resolve();
    };
    source = new Source({ slicing: { pause, sliceMs: 0, partBytes: 1 << 16 } }).record(
      ...manyRoots(60_000),
    );
    const answer = await source.ask(null);
    expect(answer.kind).toBe('tree_dump_failed');
    expect(line(answer)).toContain('The index was cleared 4 times while it was read');
  });

  test('fails when the events since its base are always gone', async () => {
    let source = new Source();
    const pause = (): Promise<void> => {
      for (let at = 0n; at < 9n; at++) source.record(root(10_000_000n + at));
      return Promise.resolve();
    };
    source = new Source({ slicing: { pause, sliceMs: 0, partBytes: 1 << 16 } }).record(
      ...manyRoots(60_000),
    );
    const answer = await source.ask(null);
    expect(line(answer)).toContain('Events came faster than the index could be read');
  });
});
