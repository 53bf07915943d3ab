/** What must hold of a world at rest, of any history; each complaint is one sentence. */
import { totalOf } from '../../src/metrics/counts.ts';
import { Account } from './account.ts';
import type { Party, World } from './world.ts';

export function complaintsAbout(world: World): string[] {
  return [
    ...world.parties.flatMap((party) => complaintsAboutParty(world, party)),
    ...world.relays.flatMap((_, rank) => complaintsAboutPlane(world, rank)),
  ];
}

function complaintsAboutParty(world: World, party: Party): string[] {
  const { setup } = world;
  const { engine, ranks } = party;
  const account = new Account(engine.witness, ranks, setup.policy === 'clear');
  const metrics = world.relays[ranks[0] ?? 0]?.metrics;
  const complaints: string[] = [];
  const { disorder, lifeDisorder, lostBatches } = account;
  if (disorder !== null) complaints.push(`out of order: ${disorder}`);
  // What a trimmed buffer leaves of a new life may not be told from the old one, for a while.
  if (lifeDisorder !== null && (hasFullReplays(world) || !setup.hasReplay)) {
    complaints.push(`out of order: ${lifeDisorder}`);
  }
  const counted = metrics?.lostBatches ?? 0;
  const { least, most } = lostBatches;
  // Where messages of a link come before it is told of, they count as the old one's.
  if (counted < least || (counted > most && !setup.lagsLinkEvents)) {
    complaints.push(`${least} to ${most} batches are lost, ${counted} were counted`);
  }
  if (hasFullReplays(world)) {
    const healable = account.missingNow.filter(({ payload }) => payload !== null);
    const [first] = healable;
    if (first !== undefined && account.unseenRestarts.length === 0) {
      complaints.push(`${healable.length} batches not replayed, the first ${first.sequence}`);
    }
    if (account.overlookedRestarts > 0) complaints.push('a restart was not seen');
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
  if (world.isDegradedByLoss(rank) !== hasLoss) {
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

/** A last batch that is lost is known where one can be asked for it, or another came behind it. */
function knowsAll(world: World, account: Account): boolean {
  const last = account.stretches.at(-1)?.at(-1);
  const missing = account.missingNow.at(-1);
  if (missing === undefined) return true;
  return last !== undefined && last.sequence > missing.sequence && world.setup.worksOn;
}

/** Whatever is lost on the way can be replayed, at any time. */
function hasFullReplays({ setup }: World): boolean {
  const { policy, hasReplay, answers, faults, bufferBatches } = setup;
  const isAnswering =
    answers.every((kind) => kind === 'whole') && !faults.includes('replay outage');
  return policy !== 'count' && hasReplay && isAnswering && bufferBatches >= 10_000;
}

function complaintsAboutPlane(world: World, rank: number): string[] {
  const complaints: string[] = [];
  const relay = world.relays[rank];
  if (relay === undefined) return ['there is no relay'];
  const { publishedMessages, publishFailures } = relay.metrics;
  const received = world.subscriber.messages(rank);
  const dropped = totalOf(publishFailures);
  if (received > publishedMessages || received + dropped < publishedMessages) {
    complaints.push(
      `rank ${rank}: ${publishedMessages} messages, ${received} received, ${dropped} dropped`,
    );
  }
  const lastEventId = relay.lastEventId ?? 0;
  if (world.subscriber.lastEventId(rank) !== lastEventId) {
    complaints.push(`rank ${rank}: event ${lastEventId} has not come`);
  }
  if (world.indexed(rank).join(' ') !== world.subscriber.held(rank).join(' ')) {
    complaints.push(`rank ${rank}: the live set differs from what is held`);
  }
  return complaints;
}
