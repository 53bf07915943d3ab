/** Setup: how the parties of one history are built, drawn from its seed. */

import { FAULT_KINDS, type FaultKind } from './faults.ts';
import type { Random } from './random.ts';
import { type AnswerKind, BAD_ANSWERS } from './replay-path.ts';

export type Policy = 'replay' | 'clear' | 'count';

export interface Setup {
  readonly policy: Policy;
  /** Whether the engine has a replay socket. */
  readonly hasReplay: boolean;
  /** Ranks on one engine socket each, or all on one. */
  readonly ranks: number;
  readonly isShared: boolean;
  readonly bufferBatches: number;
  readonly holdBatches: number;
  readonly holdBytes: number;
  readonly idleMs: number;
  readonly cooldownMs: number;
  readonly batchingTimeoutMs: number;
  readonly maxBatchBlocks: number;
  readonly outboxBytes: number;
  readonly resumeDelayMs: number;
  /** Whether the relay may be told of a link only behind its first messages. */
  readonly lagsLinkEvents: boolean;
  /** Engines connect to the relay: the next process may be there before the last one is gone. */
  readonly hidesRestarts: boolean;
  readonly stepMs: number;
  readonly clears: boolean;
  readonly lowerTiers: boolean;
  readonly sharesPrefixes: boolean;
  readonly asMaps: boolean;
  /** Batches before the relay is there. */
  readonly headStart: number;
  /** How long faults happen. */
  readonly faultyMs: number;
  readonly faults: readonly FaultKind[];
  readonly answers: readonly AnswerKind[];
  readonly routers: number;
  /** Each router joins so long after the one before it. */
  readonly joinMs: number;
  readonly requestPlane: 'tcp' | 'nats';
  readonly codec: 'msgpack' | 'json';
  /** Events kept for routers that miss a few. */
  readonly ringEvents: number;
  /** Pauses of a dump behind each of its events. */
  readonly dumpPacesMs: readonly number[];
  /** Whether engines go on working behind the last fault, so that nothing stays unseen. */
  readonly worksOn: boolean;
}

/** Each part has numbers of its own, so that a new one leaves the histories of all seeds as they are. */
export function setupOf(random: Random): Setup {
  const of = (part: string): Random => random.fork(part);
  const policy = of('policy').pick(['replay', 'replay', 'replay', 'clear', 'count'] as const);
  const replayShare = { replay: 0.9, clear: 0.6, count: 0 }[policy];
  const hasReplay = of('replay').chance(replayShare);
  const ranks = of('ranks').pick([1, 1, 2, 3]);
  const faultyMs = of('duration').pick([3000, 10_000, 25_000]);
  const hidesRestarts = of('hidden restarts').chance(0.15);
  const outboxBytes = orTight(of('outbox'), 0.25, AMPLE_BYTES, [1024, 8192]);
  const faults = FAULT_KINDS.filter((kind) => of(kind).chance(SHARES[kind] ?? 0.35));
  return {
    policy,
    hasReplay,
    ranks,
    isShared: ranks > 1 && of('sockets').chance(0.5),
    bufferBatches: orTight(of('buffer'), 0.4, AMPLE, [1, 40]),
    holdBatches: orTight(of('hold batches'), 0.3, AMPLE, [1, 10]),
    holdBytes: orTight(of('hold bytes'), 0.2, AMPLE_BYTES, [1024, 4096]),
    idleMs: of('idle').pick([200, 1000]),
    cooldownMs: of('cool-down').pick([0, 1000, 30_000]),
    batchingTimeoutMs: of('batching').pick([0, 0, 5, 50]),
    maxBatchBlocks: of('batch blocks').pick([1, 4, 128]),
    outboxBytes,
    resumeDelayMs: of('resume').pick([0, 200, 1000]),
    lagsLinkEvents: of('link events').chance(0.3),
    hidesRestarts,
    stepMs: Math.max(of('steps').pick([20, 100, 400]), faultyMs / MAX_STEPS),
    clears: of('clears').chance(0.5),
    lowerTiers: of('tiers').chance(0.5),
    sharesPrefixes: of('prefixes').chance(0.4),
    asMaps: of('form').chance(0.5),
    headStart: of('head start').pick([0, 0, 3, 30]),
    faultyMs,
    faults,
    answers: answersOf(of('answers')),
    routers: of('routers').pick([1, 1, 1, 2, 3]),
    joinMs: of('join').pick([0, 0, 300, 4000]),
    requestPlane: of('request plane').pick(['tcp', 'tcp', 'nats'] as const),
    codec: of('codec').pick(['msgpack', 'msgpack', 'msgpack', 'json'] as const),
    ringEvents: orTight(of('ring'), 0.4, AMPLE, [1, 40]),
    dumpPacesMs: of('dump pace').pick([[0], [0, 1], [1, 5, 30]]),
    worksOn: !hasReplay || hidesRestarts || of('end').chance(0.6),
  };
}

/** Of histories with a kind of fault, where it is not a third of them. */
const SHARES: Partial<Record<FaultKind, number>> = {
  // Takes its time.
  flood: 0.08,
  'router loses messages': 0.6,
};

/** Of an engine while faults happen, about: longer histories find little more, and take their time. */
const MAX_STEPS = 150;

/** With so much room nothing is ever full. */
export const AMPLE = 100_000;
export const AMPLE_BYTES: number = 1 << 26;

function orTight(
  random: Random,
  tightShare: number,
  ample: number,
  [least, most]: readonly [number, number],
): number {
  return random.chance(tightShare) ? random.between(least, most) : ample;
}

function answersOf(random: Random): AnswerKind[] {
  if (random.chance(0.6)) return ['whole'];
  const bad = BAD_ANSWERS.filter(() => random.chance(0.4));
  return ['whole', ...bad];
}
