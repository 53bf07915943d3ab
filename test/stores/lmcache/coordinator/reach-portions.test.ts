/** Very many chunks that come within reach or are given up at once: in portions, and as if it had been one. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CoordinatorSource } from '../../../../src/stores/lmcache/coordinator/coordinator-source.ts';
import { ReachableChunks } from '../../../../src/stores/lmcache/coordinator/reachable-chunks.ts';
import {
  readBatches,
  type WireFields,
  wireBatch,
  wireEntry,
} from '../../../support/cache-batches.ts';
import { CoordinatorTrial } from '../../../support/coordinator-trial.ts';
import { fixedSeed } from '../../../support/properties.ts';
import { ChunkTrial } from '../../placement/chunk-trial.ts';

const CHUNKS = 600;
const MAX_PORTION_CHUNKS = 300;
const PLACES = [
  { tier: 'l1', backend: 'dram', shared: false },
  { tier: 'l2', backend: 'fs', shared: false },
  { tier: 'l2', backend: 's3', shared: true },
  { tier: 'l1', backend: 'cxl', shared: true },
] as const;
const [OWN, DISK, POOL] = PLACES;

const entries = (from: number, end: number, hasTokens = true): WireFields[] =>
  Array.from({ length: end - from }, (_, index) => {
    const token = from + index + 1;
    const tokens = hasTokens ? { token_ids: [token, token], token_offset: 0 } : { token_ids: [] };
    return wireEntry(`c${token}`, { model_name: 'm', ...tokens });
  });

class Reach {
  readonly chunks = new ChunkTrial();
  readonly reachable: ReachableChunks = new ReachableChunks({
    instanceId: 'mp-1',
    model: 'm',
    placements: this.chunks.placements,
  });
  readonly trial: CoordinatorTrial = new CoordinatorTrial({ chunks: this.reachable });
  readonly #lives = new Map<string, { incarnation: number; seq: number }>();

  /** With the numbers that the server is at. */
  take(instance_id: string, fields: WireFields, { lost = 0, isRestart = false } = {}): void {
    const life = this.#lives.get(instance_id) ?? { incarnation: 1, seq: 0 };
    const incarnation = life.incarnation + (isRestart ? 1 : 0);
    const seq = (isRestart ? 0 : life.seq) + 1 + lost;
    this.#lives.set(instance_id, { incarnation, seq });
    this.trial.take(wireBatch(seq, { instance_id, incarnation, ...fields }));
  }

  get heldWithoutTokens(): number {
    return this.chunks.placements.waiting.tokens;
  }

  /** Tiers on which routers find each chunk, and the objects. */
  shown(): object {
    const found = Array.from({ length: CHUNKS }, (_, at) => {
      const { host_pinned, disk } = this.chunks.match([at + 1, at + 1]);
      return `${host_pinned}${disk}`;
    });
    const { placedBlocks, waiting } = this.chunks.placements;
    return { found, placedBlocks, waiting, held: this.trial.held() };
  }
}

/** How many come to be held, or are not any more, with each portion. */
function stepsOf(reach: Reach): number[] {
  const steps: number[] = [];
  while (reach.chunks.hasPortions) {
    const before = reach.heldWithoutTokens;
    reach.chunks.portion();
    steps.push(Math.abs(reach.heldWithoutTokens - before));
  }
  return steps;
}

test('a pool of very many chunks comes within reach in portions', () => {
  const reach = new Reach();
  reach.take('mp-2', { ...POOL, entries: entries(0, 2000, false) });
  reach.take('mp-1', { ...POOL, event_type: 'access' });
  expect([reach.heldWithoutTokens, reach.reachable.isBehind]).toEqual([0, true]);
  expect(Math.max(...stepsOf(reach))).toBeLessThan(MAX_PORTION_CHUNKS);
  expect([reach.heldWithoutTokens, reach.reachable.isBehind]).toEqual([2000, false]);
});

test.each([
  ['a gap', { lost: 3 }],
  ['a restart', { isRestart: true }],
])('%s gives up very many chunks in portions', (_, how) => {
  const reach = new Reach();
  reach.take('mp-1', { ...OWN, entries: entries(0, 2000, false) });
  reach.chunks.turn();
  reach.take('mp-1', { ...OWN, entries: entries(0, 10, false) }, how);
  expect(reach.heldWithoutTokens).toBeGreaterThan(1900);
  expect(reach.reachable.isBehind).toBe(true);
  expect(reach.trial.held()).toHaveLength(10);
  expect(Math.max(...stepsOf(reach))).toBeLessThan(MAX_PORTION_CHUNKS);
  expect([reach.heldWithoutTokens, reach.reachable.isBehind]).toEqual([10, false]);
});

test('a server that leaves, and comes again before all of that is withdrawn', () => {
  const reach = new Reach();
  reach.take('mp-1', { ...OWN, entries: entries(0, CHUNKS) });
  reach.take('mp-1', { ...POOL, entries: entries(0, 400) });
  reach.chunks.turn();
  reach.trial.view.leave('mp-1');
  reach.chunks.portion();
  reach.take('mp-1', { ...OWN, entries: entries(550, CHUNKS) }, { isRestart: true });
  reach.take('mp-1', { ...POOL, event_type: 'access' });
  reach.chunks.turn();
  expect(reach.chunks.match([600, 600])).toMatchObject({ host_pinned: 1 });
  expect(reach.chunks.match([540, 540])).toMatchObject({ host_pinned: 0, disk: 0 });
  expect(reach.chunks.placements.placedBlocks).toBe(450);
});

test('a pool that is given up while it comes within reach is not told any further', () => {
  const reach = new Reach();
  reach.take('mp-2', { ...POOL, entries: entries(0, 2000, false) });
  reach.take('mp-1', { ...POOL, event_type: 'access' });
  reach.chunks.portion();
  expect(reach.heldWithoutTokens).toBeGreaterThan(0);
  reach.take('mp-2', { ...POOL, entries: entries(1990, 1995, false) }, { lost: 1 });
  reach.chunks.turn();
  expect([reach.heldWithoutTokens, reach.reachable.isBehind]).toEqual([5, false]);
});

test('what another compartment of the tier holds stays where a pool is given up', () => {
  const reach = new Reach();
  reach.take('mp-2', { ...POOL, entries: entries(0, CHUNKS) });
  reach.take('mp-1', { ...POOL, event_type: 'access' });
  reach.take('mp-1', { ...DISK, entries: entries(100, 500) });
  reach.take('mp-1', { ...OWN, entries: entries(0, 50) });
  reach.chunks.turn();
  reach.take('mp-2', { ...POOL, entries: entries(0, 10) }, { lost: 1 });
  reach.chunks.turn();
  expect(reach.chunks.placements.placedBlocks).toBe(460);
});

test('a stop in the middle leaves nothing to be done', () => {
  const reach = new Reach();
  reach.take('mp-2', { ...POOL, entries: entries(0, 2000, false) });
  reach.take('mp-1', { ...POOL, event_type: 'access' });
  reach.chunks.portion();
  reach.take('mp-1', { ...OWN, entries: [] }, { lost: 1 });
  reach.reachable.stop();
  const held = reach.heldWithoutTokens;
  reach.take('mp-1', { ...OWN, entries: [] }, { lost: 1 });
  reach.chunks.turn();
  expect([reach.heldWithoutTokens, reach.reachable.isBehind]).toEqual([held, false]);
});

test('the source is suspect until routers were told, or it was stopped', async () => {
  for (const isStopped of [false, true]) {
    const chunks = new ChunkTrial();
    const { placements } = chunks;
    const source = new CoordinatorSource({
      host: '127.0.0.1',
      port: 0,
      forward: null,
      maxBodyBytes: 1 << 20,
      maxHolders: 10_000,
      instanceTimeoutSeconds: 30,
      state: new CoordinatorTrial().state,
      reach: { instanceId: 'mp-1', model: 'm', placements },
      warner: { warn: () => undefined },
    });
    const take = (seq: number): unknown =>
      source.view.take(readBatches(wireBatch(seq, { ...OWN, entries: entries(seq, seq + 500) })));
    take(1);
    chunks.turn();
    expect(source.isSuspect).toBe(false);
    take(9);
    chunks.portion();
    expect(source.isSuspect).toBe(true);
    if (isStopped) await source.stop();
    else chunks.turn();
    expect(source.isSuspect).toBe(false);
  }
});

const range = fc
  .tuple(fc.nat(CHUNKS), fc.nat(CHUNKS))
  .map(([one, other]) => entries(Math.min(one, other), Math.max(one, other)));
const batch = fc.record({
  server: fc.constantFrom('mp-1', 'mp-2'),
  place: fc.constantFrom(...PLACES, POOL, POOL),
  event_type: fc.constantFrom('store', 'store', 'delete', 'access'),
  entries: range,
  lost: fc.constantFrom(0, 0, 0, 2),
  isRestart: fc.constantFrom(...Array.from({ length: 5 }, () => false), true),
  leaves: fc.constantFrom(...Array.from({ length: 9 }, () => false), true),
  portions: fc.nat(2),
});

test('whatever comes between portions, in the end all is as if each had been done at once', () => {
  let behind = 0;
  fc.assert(
    fc.property(fc.array(batch, { minLength: 6, maxLength: 16 }), (batches) => {
      const reach = new Reach();
      const atOnce = new Reach();
      for (const {
        server,
        place,
        event_type,
        entries: some,
        leaves,
        portions,
        ...how
      } of batches) {
        const fields = { ...place, event_type, entries: some };
        for (const one of [reach, atOnce]) {
          if (leaves) one.trial.view.leave(server);
          one.take(server, fields, how);
        }
        atOnce.chunks.turn();
        for (let done = 0; done < portions; done++) reach.chunks.portion();
        if (reach.reachable.isBehind) behind++;
      }
      reach.chunks.turn();
      expect(reach.shown()).toEqual(atOnce.shown());
    }),
    { ...fixedSeed, numRuns: 60 },
  );
  expect(behind).toBeGreaterThan(40);
});
