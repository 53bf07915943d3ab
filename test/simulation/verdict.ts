/** What must hold of a world at rest, of any history; each complaint is one sentence. */
import { totalOf } from '../../src/metrics/counts.ts';
import { degradedCodes } from '../../src/relay-degraded.ts';
import { Account } from './account.ts';
import { AMPLE, AMPLE_BYTES, type Setup } from './setup.ts';
import type { Party, World } from './world.ts';

export function complaintsAbout(world: World): string[] {
  return [
    ...world.parties.flatMap((party) => complaintsAboutParty(world, party)),
    ...world.relays.flatMap((_, rank) => complaintsAboutPlane(world, rank)),
  ];
}

/**
 * Blocks that a router believes in though the engine has them no more: there must be none some time after
 * the last fault and the last batch, but where a loss is counted or a restart could not be seen.
 */
export function complaintsAboutStaleBlocks(world: World): string[] {
  if (world.setup.hasReplay && !isAnswered(world)) return [];
  return world.parties.flatMap(({ engine, ranks }) => {
    const account = new Account(engine.witness, ranks, world.setup.policy === 'clear');
    // A new life is known by its first batch, a loss by the next one.
    const isTold = engine.witness.life.at(-1)?.payload ?? null;
    if (isTold === null || account.unseenRestarts.length > 0) return [];
    return ranks.flatMap((rank) => {
      const held = world.subscriber.held(rank);
      const stale = held.filter((key) => engine.counts.copies(rank, key) === 0);
      const isExcused = account.hasLossSinceClear.get(rank) === true;
      return stale.length === 0 || isExcused
        ? []
        : [`rank ${rank}: held for long [${stale.join(' ')}]`];
    });
  });
}

function complaintsAboutParty(world: World, party: Party): string[] {
  const { setup } = world;
  const { engine, ranks } = party;
  const account = new Account(engine.witness, ranks, setup.policy === 'clear');
  const metrics = world.relays[ranks[0] ?? 0]?.metrics;
  const complaints: string[] = [];
  const { disorder, lifeDisorder, lostBatches } = account;
  if (disorder !== null) complaints.push(`out of order: ${disorder}`);
  // Where a new life cannot be told from the old one, what is held of that may follow it.
  if (lifeDisorder !== null && account.unseenRestarts.length === 0) {
    complaints.push(`out of order: ${lifeDisorder}`);
  }
  const counted = metrics?.lostBatches ?? 0;
  const { least, most } = lostBatches;
  // What comes on a link that is not, or not yet, told of counts as the old one's.
  const mayCountMore = setup.lagsLinkEvents || setup.hidesRestarts;
  if (counted < least || (counted > most && !mayCountMore)) {
    complaints.push(`${least} to ${most} batches are lost, ${counted} were counted`);
  }
  if (isHealed(world)) {
    const healable = account.healableNow;
    const [first] = healable;
    if (first !== undefined && account.unseenRestarts.length === 0) {
      complaints.push(`${healable.length} batches not replayed, the first ${first.sequence}`);
    }
    const overlooked = account.overlookedRestart;
    // Without a lost link nobody looks: a new life is known by numbers that start over, if at all.
    if (overlooked !== null && !setup.hidesRestarts)
      complaints.push(`a restart was not seen: ${overlooked}`);
  }
  return [
    ...complaints.map((complaint) => `rank ${ranks[0]}: ${complaint}`),
    ...ranks.flatMap((rank) => complaintsAboutRank(world, party, rank, account)),
  ];
}

function complaintsAboutRank(
  world: World,
  { engine, ranks }: Party,
  rank: number,
  account: Account,
): string[] {
  const complaints: string[] = [];
  const passedOn = account.passedOn(rank).join(' ');
  const held = world.subscriber.held(rank).join(' ');
  const expectHeld = (expected: string, whose: string): void => {
    if (held !== expected) complaints.push(`rank ${rank}: held [${held}], ${whose} [${expected}]`);
  };
  expectHeld(passedOn, 'passed on');
  const hasLoss = account.hasLossSinceClear.get(rank) ?? false;
  if (isDegradedByLoss(world, rank) !== hasLoss) {
    complaints.push(`rank ${rank}: ${hasLoss ? 'not ' : ''}degraded`);
  }
  const isJudged = !hasLoss && account.unseenRestarts.length === 0 && knowsAll(world, account);
  if (isJudged && account.missingNow.length === 0) {
    expectHeld(engine.counts.held(rank).join(' '), 'the engine');
  } else if (isJudged && world.setup.policy === 'clear') {
    expectHeld(account.behindLastLoss(rank).join(' '), 'the engine since the last loss');
  }
  return complaints.slice(0, ranks.length + 2);
}

/** Whether a rank's relay says that losses may mislead routers. */
function isDegradedByLoss({ relays }: World, rank: number): boolean {
  const relay = relays[rank];
  const codes = relay === undefined ? [] : degradedCodes(relay, true);
  return codes.includes('engine_gap') || codes.includes('recovered_with_loss');
}

/** A new life is known by its first batch; a last one that is lost, by an answer, or by one behind it. */
function knowsAll(world: World, account: Account): boolean {
  if (!account.hasNews) return false;
  const missing = account.missingNow.at(-1);
  if (missing === undefined) return true;
  const last = account.stretches.at(-1)?.at(-1);
  return last !== undefined && last.sequence > missing.sequence && world.setup.worksOn;
}

/** Whatever is kept can be asked for at any time, and comes with the first answer. */
function isAnswered({ setup }: Pick<World, 'setup'>): boolean {
  const { policy, hasReplay, answers, faults, bufferBatches } = setup;
  const comes = answers.every((kind) => kind === 'whole') && !faults.includes('replay outage');
  return policy !== 'count' && hasReplay && comes && bufferBatches >= AMPLE;
}

/**
 * As above, but it may take several answers, each of which brings something. A hole that nothing can fill
 * is not told from one of the answer while no link stands, and then asked for in vain.
 */
function isHealed(world: World): boolean {
  const { setup } = world;
  const { answers, faults, holdBatches, holdBytes } = setup;
  const bringsSome =
    answers.every((kind) => kind !== 'silent' && kind !== 'late') &&
    !faults.includes('unencodable');
  const isRoomy = holdBatches >= AMPLE && holdBytes >= AMPLE_BYTES;
  const asIfWhole: Setup = bringsSome && isRoomy ? { ...setup, answers: ['whole'] } : setup;
  return isAnswered({ setup: asIfWhole });
}

function complaintsAboutPlane(world: World, rank: number): string[] {
  const complaints: string[] = [];
  const relay = world.relays[rank];
  if (relay === undefined) return ['there is no relay'];
  const { publishedMessages, publishFailures, supersededMessages } = relay.metrics;
  const received = world.subscriber.messages(rank);
  const dropped = totalOf(publishFailures) + supersededMessages;
  if (received > publishedMessages || received + dropped < publishedMessages) {
    complaints.push(
      `rank ${rank}: ${publishedMessages} messages, ${received} received, ${dropped} dropped`,
    );
  }
  const lastEventId = relay.lastEventId ?? 0;
  if (world.subscriber.lastEventId(rank) !== lastEventId) {
    complaints.push(`rank ${rank}: event ${lastEventId} has not come`);
  }
  return complaints;
}
