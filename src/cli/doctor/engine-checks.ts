/** What an engine's socket showed, as checks: the first that fails explains those behind it. */

import { type Check, type CheckName, fail, ok, skipped, warn } from './check.ts';
import type { EngineSighting } from './engine-probe.ts';
import { missingBlockSize, seenChecks } from './engine-seen.ts';
import { messageOfReach } from './reach.ts';

export interface EngineExpectation {
  readonly topic: string;
  /** Ranks whose batches belong on this socket. */
  readonly dpRanks: readonly number[];
  readonly blockSize: number;
  readonly isBlockSizeGiven: boolean;
  readonly engine: string;
  /** Of `strict`, where a socket's batches all pass under its own rank. */
  readonly takesAnyRank: boolean;
}

const BEHIND_MESSAGES: readonly CheckName[] = [
  'engine_topic',
  'engine_events',
  'engine_rank',
  'engine_filter',
  'block_size',
];
const BEHIND_LINK: readonly CheckName[] = ['engine_messages', ...BEHIND_MESSAGES];

const ENABLE =
  "Start the engine with KV events on, and give --engine-endpoint the address of its publisher (vLLM's and SGLang's --kv-events-config)";

export function engineChecks(sighting: EngineSighting, expected: EngineExpectation): Check[] {
  return linkChecks(sighting, expected).map((check) =>
    check.name === 'block_size' && check.state === 'skipped' && !expected.isBlockSizeGiven
      ? missingBlockSize([])
      : check,
  );
}

function linkChecks(sighting: EngineSighting, expected: EngineExpectation): Check[] {
  const reachable = reachCheck(sighting);
  if (reachable.state === 'fail') {
    return [
      reachable,
      ...unseen(['engine_publisher', ...BEHIND_LINK], 'the engine is not reached'),
    ];
  }
  const publisher = publisherCheck(sighting);
  if (publisher.state !== 'ok') {
    return [reachable, publisher, ...unseen(BEHIND_LINK, 'there is no publisher to listen to')];
  }
  const messages = messagesCheck(sighting);
  if (sighting.messages === 0) {
    return [reachable, publisher, messages, ...unseen(BEHIND_MESSAGES, 'nothing was published')];
  }
  return [reachable, publisher, messages, ...seenChecks(sighting, expected)];
}

/** Every check of an engine's socket, where none can be made. */
export function skippedEngineChecks(reason: string): Check[] {
  return unseen(['engine_reachable', 'engine_publisher', ...BEHIND_LINK], reason);
}

function unseen(names: readonly CheckName[], reason: string): Check[] {
  return names.map((name) => skipped(name, reason));
}

function reachCheck({ endpoint, reach, bindProblem }: EngineSighting): Check {
  const name = 'engine_reachable';
  if (bindProblem !== null) {
    const remedy =
      'Free the address, give another with --engine-endpoint, or leave --engine-bind out';
    return fail(name, `${endpoint} cannot be bound: ${bindProblem}`, remedy);
  }
  if (reach === null) return ok(name, `${endpoint} can be bound; the engine connects to it`);
  if (reach.kind === 'zmq') return ok(name, `a ZMQ socket listens at ${endpoint}`);
  return fail(name, `${endpoint}: ${messageOfReach(reach)}`, ENABLE);
}

function publisherCheck({ endpoint, reach, hasHandshake }: EngineSighting): Check {
  const name = 'engine_publisher';
  if (hasHandshake) return ok(name, 'it is a publisher');
  if (reach === null) {
    const remedy = 'Let the engine connect its publisher to this address';
    return warn(name, `no engine has connected to ${endpoint}`, remedy);
  }
  const text = `the ZMQ socket at ${endpoint} lets no subscriber in: it is no publisher`;
  return fail(name, text, `Perhaps it is the replay socket. ${ENABLE}`);
}

function messagesCheck({ messages, watchedMs }: EngineSighting): Check {
  const name = 'engine_messages';
  const seconds = (watchedMs / 1000).toFixed(1);
  if (messages > 0) return ok(name, `${messages} messages in ${seconds} s`);
  const remedy =
    'An engine without requests publishes nothing: send it one, or watch longer with --seconds';
  return warn(name, `no message within ${seconds} s`, remedy);
}
