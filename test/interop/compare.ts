/** Holds what a router got against what the engine says it did. An empty text is no difference. */
import type { Plane, PlaneStore } from './plane.ts';
import type { Truth, TruthStore } from './truth.ts';

const SHOWN = 10;

export interface LiveDifference {
  /** What there is and the router does not know, at most ten of them. */
  readonly missing: readonly string[];
  /** What the router believes and there is not. */
  readonly wrong: readonly string[];
}

/** Blocks in the words of both sides. */
export interface LiveBlocks {
  live(): readonly string[];
}

/** A block that one side has more often than the other is a difference too. */
export function liveDifference(router: LiveBlocks, wanted: LiveBlocks): LiveDifference {
  const [have, should] = [new Set(numbered(router.live())), new Set(numbered(wanted.live()))];
  return {
    missing: [...should].filter((block) => !have.has(block)).slice(0, SHOWN),
    wrong: [...have].filter((block) => !should.has(block)).slice(0, SHOWN),
  };
}

/** Blocks that come again are told apart, so that sets of them count. */
function numbered(blocks: readonly string[]): string[] {
  const copies = new Map<string, number>();
  return blocks.map((block) => {
    const copy = (copies.get(block) ?? 0) + 1;
    copies.set(block, copy);
    return copy === 1 ? block : `${block}, copy ${copy}`;
  });
}

/**
 * The first change that a router hears of otherwise than it happened, with the ones before it. A
 * wrong removal heals with the next clear, so that the end alone tells little.
 */
export function changeDifference(plane: Plane, truth: Truth): string {
  const [have, should] = [plane.changes, truth.changes];
  const length = Math.max(have.length, should.length);
  for (let index = 0; index < length; index++) {
    if (have[index] === should[index]) continue;
    const before = should.slice(Math.max(0, index - SHOWN), index).join(', ');
    return `change ${index} is "${have[index]}", and should be "${should[index]}", after ${before}`;
  }
  return '';
}

/**
 * The first published store that is not made of the engine's stores, in order and each as a whole. A
 * merged store is a chain: each part hangs from the last block before it.
 */
export function storeDifference(plane: Plane, truth: Truth): string {
  const engineStores = truth.stores.filter(({ hashes }) => hashes.length > 0);
  let next = 0;
  for (const published of plane.stores) {
    let parent = published.parent;
    for (let taken = 0; taken < published.hashes.length; next++) {
      const part = engineStores[next];
      if (part === undefined) return `event ${published.eventId} has blocks beyond the last store`;
      const end = taken + part.hashes.length;
      const why = partDifference(part, published, published.hashes.slice(taken, end), parent);
      if (why !== '') return `event ${published.eventId}, the engine's store ${next}: ${why}`;
      taken = end;
      parent = published.hashes[end - 1] ?? null;
    }
  }
  const left = engineStores.length - next;
  return left === 0 ? '' : `the last ${left} stores of the engine were not published`;
}

function partDifference(
  part: TruthStore,
  published: PlaneStore,
  hashes: readonly bigint[],
  parent: bigint | null,
): string {
  const shown = (value: unknown): string => String(value);
  const rows: [string, string, string][] = [
    ['blocks', shown(hashes), shown(part.hashes)],
    ['parent', shown(parent), shown(part.parent)],
    ['tier', published.tier, part.tier],
    ['session', shown(published.sessionId), shown(part.sessionId)],
    ['tokens', shown(hashes.length * part.blockSize), shown(part.tokenCount)],
  ];
  const row = rows.find(([, have, should]) => have !== should);
  return row === undefined ? '' : `${row[0]}: have ${row[1]}, should have ${row[2]}`;
}

/** The first place where numbers do not count up by one from `first`. */
export function countingBreak(numbers: readonly number[], first: number): string {
  const index = numbers.findIndex((number, place) => number !== first + place);
  return index < 0 ? '' : `place ${index} has ${numbers[index]}, and should have ${first + index}`;
}
