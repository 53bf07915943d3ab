/** Looking ahead changes how long a batch takes and nothing else. */
import { expect, test } from 'vitest';
import { RefcountDedup } from '../../src/dedup/refcount-dedup.ts';
import { BlockIndex } from '../../src/indexer/block-index.ts';
import { arena } from '../../src/kernel/arena.ts';
import { wasm } from '../../src/kernel/kernel.ts';
import { keysAddress, listKeys, looksAhead } from '../../src/kernel/look-ahead.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { dumpOf, rowsOf } from '../support/held-blocks.ts';
import { cleared, removed, shown, stored } from '../support/placements.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom, sortedRows } from '../support/router-streams.ts';

const CHAIN_BLOCKS = 50;
const CHAINS = 1500;
const BATCHES = 300;
const EVENTS = 20;

function hashAt(chain: number, place: number): bigint {
  return BigInt.asUintN(64, BigInt(chain * 1000 + place + 1) * 0x9e37_79b9_7f4a_7c15n);
}

function chainOf(chain: number, count: number): bigint[] {
  return Array.from({ length: count }, (_, place) => hashAt(chain, place));
}

/** A whole number below `end`. */
type Random = (end: number) => number;

/** Stores that go on, turn off or hang in the air, removes of ends and of whole chains, and the odd clear of nothing. */
function batchOf(random: Random, tier: StorageTier): PlacementEvent[] {
  return Array.from({ length: EVENTS }, () => {
    const chain = random(CHAINS);
    const place = random(CHAIN_BLOCKS);
    const kind = random(8);
    if (kind === 0)
      return stored(hashAt(chain, place), [hashAt(chain, 500 + random(400))], { tier });
    if (kind === 1) return stored(null, chainOf(chain, 1 + place), { tier });
    if (kind === 2) return removed(chainOf(chain, CHAIN_BLOCKS).slice(place).reverse(), { tier });
    if (kind === 3) return removed([hashAt(chain, place)], { tier });
    if (kind === 4) return removed([], { tier });
    if (kind === 5) return cleared(7);
    return stored(hashAt(chain, 48), [hashAt(chain, 49), hashAt(chain, 900)], { tier });
  });
}

function play(tier: StorageTier, readsAhead: boolean): object {
  const metrics = new RelayMetrics();
  const dedup = new RefcountDedup({ maxTrackedBlocks: 1e6 }, metrics);
  const index = new BlockIndex(1e6, metrics);
  const share = seededRandom(fixedSeed.seed);
  const random: Random = (end) => Math.floor(share() * end);
  const passed: string[] = [];
  const relay = (batch: PlacementEvent[]): PlacementEvent[] => {
    const out: PlacementEvent[] = [];
    if (readsAhead) dedup.lookAhead(batch);
    for (const event of batch) dedup.push(event, out);
    if (readsAhead) index.lookAhead(out);
    for (const event of out) index.apply(event);
    return out;
  };
  for (let chain = 0; chain < CHAINS; chain++) {
    arena.reset();
    relay([stored(null, chainOf(chain, CHAIN_BLOCKS), { tier })]);
  }
  expect(looksAhead()).toBe(true);
  for (let batch = 0; batch < BATCHES; batch++) {
    arena.reset();
    passed.push(...relay(batchOf(random, tier)).map(shown));
  }
  const held = sortedRows(rowsOf(dumpOf(index)));
  const outcome = { passed, held, size: index.size, counted: metrics.trackedBlocks[tier] };
  index.free();
  dedup.flush();
  return outcome;
}

test.each(['device', 'host_pinned'] as const)(
  'what passes and what is held on %s is the same with and without looking ahead',
  (tier) => {
    expect(play(tier, true)).toEqual(play(tier, false));
  },
);

test('a batch names the first block of each event, and its parent where that is asked for', () => {
  arena.reset();
  const batch = [
    stored(7n, [1n, 2n]),
    stored(null, [3n]),
    removed([4n, 5n]),
    cleared(),
    removed([]),
  ];
  const keysOf = (withParents: boolean): number[] => {
    const count = listKeys(batch, withParents);
    return [...new BigUint64Array(wasm.memory.buffer, keysAddress, count)].map(Number);
  };
  expect(keysOf(true)).toEqual([7, 1, 3, 4]);
  expect(keysOf(false)).toEqual([1, 3, 4]);
});

test('a batch of any length leaves what lies behind the list alone', () => {
  arena.reset();
  const batch = Array.from({ length: 3000 }, (_, at) => stored(9n, [BigInt(at)]));
  const behind = new Uint8Array(wasm.memory.buffer, keysAddress + 1024 * 8, 64);
  const before = [...behind];
  expect(listKeys(batch, true)).toBe(1024);
  expect([...behind]).toEqual(before);
});
