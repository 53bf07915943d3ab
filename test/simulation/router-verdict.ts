/**
 * What must hold of routers: all the time, and of a world at rest whose last events lost nothing.
 *
 * Index    equals what the engine told, by the rules of a stock router.
 * Routers  hold what the index holds, but where a router has lost messages while a query of its ran and
 *          no output was held: nobody can know of that.
 */
import { totalOf } from '../../src/metrics/counts.ts';
import type { Relay } from '../../src/relay.ts';
import { rowsOf } from '../support/held-blocks.ts';
import { consecutiveEventsOf } from '../support/published-events.ts';
import { type HeldRow, RouterIndexModel } from '../support/router-index-model.ts';
import { sortedRows } from '../support/router-streams.ts';
import { Account } from './account.ts';
import { type BlockKey, blockKey } from './block-counts.ts';
import type { RelayWatch } from './relay-watch.ts';
import type { RouterRank } from './router-rank.ts';
import type { StockRouter } from './stock-router.ts';
import type { World } from './world.ts';

/** Output waits for at most 2 s; and the way, with what is on it already. */
const MAX_BELIEVED_MS = 3000;

/** Blocks that a router with nothing in its way believes in long after their removal was published. */
export function complaintsAboutBelief(world: World): string[] {
  const nowMs = world.clock.nowMs();
  if (world.disturbedUntilMs > nowMs - MAX_BELIEVED_MS) return [];
  return pairsOf(world).flatMap(([router, rank]) => {
    const watch = world.process?.watches[rank.rank];
    if (watch === undefined || !isCalm(router, rank, watch.relay)) return [];
    const gone = keysOf(rank).filter((key) => {
      const removedMs = watch.removedMs(key);
      return removedMs !== null && removedMs <= nowMs - MAX_BELIEVED_MS;
    });
    if (gone.length === 0) return [];
    // A remove of what hangs below a block that is gone may take nothing at a stock router.
    const kept = new Set(keysOf(watch));
    const believed = gone.filter((key) => !kept.has(key));
    if (believed.length === 0) return [];
    return [`rank ${rank.rank}: ${router.name} believes for long in [${believed.join(' ')}]`];
  });
}

function keysOf(holder: { rows(): HeldRow[] }): BlockKey[] {
  return holder.rows().map(([tier, , hash]) => blockKey(tier, BigInt(hash)));
}

/** It follows what the relay publishes now, and has lost nothing of that. */
function isCalm({ lost }: StockRouter, rank: RouterRank, { publisherId, metrics }: Relay): boolean {
  return (
    rank.query === null &&
    rank.holes.length === 0 &&
    rank.publisherId === publisherId &&
    !lost.has(publisherId) &&
    totalOf(metrics.publishFailures) === 0
  );
}

/** What each rank's index holds, as `/api/dump` reads it; null where it cannot be read. */
async function readIndexes(world: World): Promise<(HeldRow[] | null)[]> {
  const indexes: (HeldRow[] | null)[] = [];
  for (const { indexer, dpRank } of world.relays) {
    let events: HeldRow[] | null = null;
    void indexer?.dump().then((dump) => {
      const chunks = dump?.events.chunks ?? [];
      events = rowsOf(consecutiveEventsOf(Buffer.concat(chunks)), dpRank);
    });
    // No longer than it takes: a last replay may still be under way, and bring something.
    for (let ms = 0; events === null && ms < DUMP_MS; ms++) await world.clock.run(1);
    indexes.push(events);
  }
  return indexes;
}

const DUMP_MS = 5000;

export async function complaintsAboutRouters(world: World): Promise<string[]> {
  const indexes = await readIndexes(world);
  const watches = world.process?.watches ?? [];
  return [
    ...world.complaints,
    ...world.ids.complaints,
    ...watches.flatMap(({ complaints }) => complaints),
    ...indexes.flatMap((index, rank) => complaintsAboutIndex(world, rank, index)),
    ...pairsOf(world).flatMap(([router, rank]) =>
      complaintsAboutRank(world, router, rank, indexes[rank.rank] ?? null),
    ),
  ];
}

function complaintsAboutIndex(world: World, rank: number, index: HeldRow[] | null): string[] {
  if (index === null) return [`rank ${rank}: the index cannot be read`];
  const watch = world.process?.watches[rank];
  const complaints = [
    ...differences('the index', index, 'what was published', watch?.rows() ?? []),
    // Below a block that is gone, a router's index depends on how events were merged.
    ...(world.setup.sharesPrefixes
      ? []
      : differences('the index', withoutTokens(index), 'the engine', told(world, rank))),
  ];
  return complaints.map((complaint) => `rank ${rank}: ${complaint}`);
}

function complaintsAboutRank(
  world: World,
  router: StockRouter,
  rank: RouterRank,
  index: HeldRow[] | null,
): string[] {
  const complaints = [...rank.faults];
  const watch = world.process?.watches[rank.rank];
  if (rank.publisherId !== watch?.relay.publisherId) complaints.push('it follows another source');
  else if (rank.query !== null) complaints.push('it still asks');
  else if (rank.holes.length === 0) {
    const isCompared = comparedRows(world, watch);
    const [held, indexed] = [rank.rows(), index ?? []].map((rows) => rows.filter(isCompared));
    complaints.push(...differences('it', held ?? [], 'the index', indexed ?? []));
  } else if (!isExcused(router, rank)) {
    complaints.push(`it has skipped events ${rank.holes.slice(0, 5).join()}`);
  }
  return complaints.map((complaint) => `rank ${rank.rank}: ${router.name}: ${complaint}`);
}

/**
 * Where prefixes are shared, a router's tree may keep what it was told to remove, as its history is: one that began with a
 * dump has another history than the index.
 */
function comparedRows({ setup }: World, watch: RelayWatch): (row: HeldRow) => boolean {
  if (!setup.sharesPrefixes) return () => true;
  const kept = new Set(watch.keys);
  return ([tier, , hash]) => kept.has(blockKey(tier, BigInt(hash)));
}

/** The link took them all: a relay hears of none of it. */
function isExcused({ lost }: StockRouter, { holes, publisherId }: RouterRank): boolean {
  const ids = lost.get(publisherId ?? 0);
  return holes.every((id) => ids?.has(id) === true);
}

/** What the pipeline was given, as a router holds it: a block is removed with its last copy. */
function told(world: World, rank: number): HeldRow[] {
  const party = world.parties.find(({ ranks }) => ranks.includes(rank));
  if (party === undefined) return [];
  const account = new Account(party.engine.witness, party.ranks, world.setup.policy === 'clear');
  return withoutTokens(account.routerOf(rank, new RouterIndexModel()).rows());
}

function withoutTokens(rows: readonly HeldRow[]): HeldRow[] {
  return rows.map(([tier, parent, hash]) => [tier, parent, hash, '']);
}

function differences(
  whose: string,
  rows: readonly HeldRow[],
  others: string,
  expected: readonly HeldRow[],
): string[] {
  const [held, wanted] = [sortedRows(rows), sortedRows(expected)];
  const more = held.filter((row) => !wanted.includes(row));
  const fewer = wanted.filter((row) => !held.includes(row));
  if (more.length + fewer.length === 0 && held.length === wanted.length) return [];
  return [`${whose} has [${more.join('; ')}] more than ${others}, [${fewer.join('; ')}] fewer`];
}

function pairsOf({ routers }: World): [StockRouter, RouterRank][] {
  return routers.flatMap((router) =>
    router.ranks.map((rank): [StockRouter, RouterRank] => [router, rank]),
  );
}
