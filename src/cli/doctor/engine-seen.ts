/** What the messages of an engine's socket showed, as checks. Token ids are looked at by nobody. */
import { totalOf } from '../../metrics/counts.ts';
import { EVENT_TYPES, FILTER_REASONS, MEDIUM_LABELS } from '../../metrics/relay-metrics.ts';
import { EVENT_FAULTS } from '../../protocol/native-batch.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import type { EngineExpectation } from './engine-checks.ts';
import type { EngineSighting } from './engine-probe.ts';

const OTHER_ENGINE = 'Check --engine against the engine and its version';

export function seenChecks(seen: EngineSighting, expected: EngineExpectation): Check[] {
  const topic = topicCheck(seen, expected);
  const events = topic.state === 'fail' ? null : eventsCheck(seen, expected);
  if (events === null || seen.batches === 0) {
    const reason = 'no batch was read';
    return [
      topic,
      events ?? skipped('engine_events', reason),
      skipped('engine_rank', reason),
      skipped('engine_filter', reason),
      skipped('block_size', reason),
    ];
  }
  const rank = rankCheck(seen, expected);
  return [topic, events, rank, filterCheck(seen), blockSizeCheck(seen, expected)];
}

function topicCheck(seen: EngineSighting, { topic }: EngineExpectation): Check {
  const name = 'engine_topic';
  const others = [...seen.foreignTopics].map((other) => JSON.stringify(other)).join(', ');
  if (seen.matching === 0) {
    const remedy = 'Give --engine-topic the start of one of them, or leave it out for all';
    return fail(name, `no topic begins with "${topic}"; there are ${others}`, remedy);
  }
  if (topic === '') return ok(name, 'every topic is taken');
  const rest = others === '' ? '' : `; not taken: ${others}`;
  return ok(name, `topics that begin with "${topic}" come${rest}`);
}

function eventsCheck(seen: EngineSighting, { engine }: EngineExpectation): Check {
  const name = 'engine_events';
  if (seen.planeMessages > 0) {
    const remedy = 'Give --engine-endpoint the address of the engine, not that of an event plane';
    return fail(name, 'these are messages of an event plane, for routers', remedy);
  }
  const bad = listed(seen.malformed);
  if (seen.batches === 0) return fail(name, `no message can be read: ${bad}`, OTHER_ENGINE);
  if (seen.metrics.isEngineUnsupported) {
    const text = `this version of ${engine} hashes blocks without their position`;
    return fail(name, text, 'Use SGLang 0.5.6 or newer: no router can rebuild such chains');
  }
  if (bad !== '') return warn(name, `some messages cannot be read: ${bad}`, OTHER_ENGINE);
  const { droppedEngineEvents } = seen.metrics;
  const dropped = listed(EVENT_FAULTS.map((fault) => [fault, droppedEngineEvents[fault]]));
  if (dropped !== '') return warn(name, `some events cannot be used: ${dropped}`, OTHER_ENGINE);
  const received = listed(EVENT_TYPES.map((type) => [type, seen.metrics.received[type]]));
  return ok(name, `${seen.batches} batches read: ${received || 'without events'}`);
}

function rankCheck(seen: EngineSighting, { dpRanks, takesAnyRank }: EngineExpectation): Check {
  const name = 'engine_rank';
  const ours = dpRanks.length === 1 ? `${dpRanks[0]}` : `${dpRanks[0]} to ${dpRanks.at(-1)}`;
  const named = [...seen.ranks.keys()].map((rank) => rank ?? 'none').join(', ');
  const foreign = [...seen.ranks.keys()].filter((rank) => rank !== null && !dpRanks.includes(rank));
  if (foreign.length === 0) return ok(name, `batches name rank ${named}; configured is ${ours}`);
  if (takesAnyRank) {
    const remedy = 'Check --dp-rank: the socket may be that of another rank';
    return warn(name, `batches of rank ${named} pass as rank ${ours}`, remedy);
  }
  const remedy = `Give --dp-rank and --dp-size the ranks of this engine, and the first rank's own port`;
  const text = `batches of rank ${foreign.join(', ')} are dropped; configured is ${ours}`;
  return foreign.length === seen.ranks.size ? fail(name, text, remedy) : warn(name, text, remedy);
}

function filterCheck({ metrics, groups }: EngineSighting): Check {
  const name = 'engine_filter';
  const received = totalOf(metrics.received);
  if (received === 0) return skipped(name, 'no event came');
  const media = listed(
    MEDIUM_LABELS.map((medium) => [
      medium,
      EVENT_TYPES.reduce((sum, type) => sum + metrics.engineEvents[type][medium], 0),
    ]),
  );
  const found = `media ${media}${groups.size > 0 ? `; groups ${[...groups].join(', ')}` : ''}`;
  const reasons = listed(
    FILTER_REASONS.map((reason) => [
      reason,
      EVENT_TYPES.reduce((sum, type) => sum + metrics.filtered[type][reason], 0),
    ]),
  );
  const accepted = totalOf(metrics.accepted);
  const text = `${accepted} of ${received} events pass (${found})`;
  if (reasons === '') return ok(name, text);
  if (accepted > 0) return ok(name, `${text}; filtered: ${reasons}`);
  const remedy = 'Check --engine, and what the engine is set to publish: media, attention groups';
  return fail(name, `every event is filtered: ${reasons} (${found})`, remedy);
}

function blockSizeCheck({ metrics }: EngineSighting, expected: EngineExpectation): Check {
  const name = 'block_size';
  const { blockSize, isBlockSizeGiven } = expected;
  const sizes = metrics.blockSizesSeen;
  const seen = sizes.join(', ');
  if (!isBlockSizeGiven) return missingBlockSize(sizes);
  if (seen === '') return skipped(name, 'no store came that names one');
  if (metrics.usableStores > 0 && metrics.wrongSizeStores === 0) {
    return ok(name, `blocks of ${seen} tokens come, ${blockSize} are configured`);
  }
  const remedy = `Give --block-size ${sizes[0]}, which routers have to use too`;
  const text = `blocks of ${seen} tokens come, but ${blockSize} are configured`;
  return metrics.usableStores > 0 ? warn(name, text, remedy) : fail(name, text, remedy);
}

/** `sizes`: what stores have shown. */
export function missingBlockSize(sizes: readonly number[]): Check {
  const [first] = sizes;
  const found =
    first === undefined
      ? 'no store has shown one'
      : `the engine's blocks have ${sizes.join(', ')} tokens`;
  return fail('block_size', `it is not given; ${found}`, `Give --block-size ${first ?? 'TOKENS'}`);
}

/** `frames 3, msgpack 1`; empty where all are 0. */
function listed(counts: Iterable<readonly [name: string, count: number]>): string {
  return [...counts]
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
