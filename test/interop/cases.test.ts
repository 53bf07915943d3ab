/** Every event kind and field combination that an engine's version can write, one batch each. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NatsServerProcess, startNatsServer } from '../support/nats-server.ts';
import { countingBreak } from './compare.ts';
import { canRun, type EngineVersion, FETCHED, isNewest, newestOf } from './engines.ts';
import { type Compat, type PlayOutcome, play, relayOf, relaysOf } from './play.ts';

const COMPAT: readonly Compat[] = ['strict', 'safe'];

const VERSIONS: readonly EngineVersion[] = [
  newestOf('vllm'),
  newestOf('sglang'),
  ...FETCHED.filter((version) => !isNewest(version)),
];

/** Dynamo's publisher, and so `strict`, has no place for these in its types. */
const UNREADABLE_CASES: ReadonlySet<string> = new Set([
  'stored/hash-bytes',
  'stored/hash-bytes-parent-bytes',
  'stored/extra_keys/digest-bytes',
  'removed/hash-bytes',
]);

/** Their batches have two elements: the rank came with the next version. */
const VERSIONS_WITHOUT_RANK: ReadonlySet<string> = new Set(['vllm 0.9.0', 'sglang 0.4.6.post5']);

/** How many of the cases `strict` has to reject. */
function unreadableCount({ engine, version }: EngineVersion, { truth }: PlayOutcome): number {
  if (VERSIONS_WITHOUT_RANK.has(`${engine} ${version}`)) return truth.length;
  return truth.filter(({ case: name }) => UNREADABLE_CASES.has(name ?? '')).length;
}

describe.each(VERSIONS)('the cases of $engine $version', (version) => {
  const isRunnable = canRun(version);
  let server: NatsServerProcess;
  let outcome: PlayOutcome;

  beforeAll(async () => {
    if (!isRunnable) return;
    server = await startNatsServer();
    const flags = ['--cases'];
    outcome = await play(server, { ...version, flags, blockSize: 4, relays: relaysOf(COMPAT) });
  });
  afterAll(() => server?.stop());

  describe.skipIf(!isRunnable).each(COMPAT)('%s', (compat) => {
    test('rejects what it has to, and nothing else', () => {
      expect(outcome.truth.length).toBeGreaterThan(10);
      const { malformed, lost_batches } = relayOf(outcome, compat).rank.counters;
      const unreadable = unreadableCount(version, outcome);
      expect(malformed).toBe(compat === 'strict' ? unreadable : 0);
      expect(lost_batches).toBe(0);
    });

    test('goes on, numbers without holes, and ends cleanly', () => {
      const { exitCode, plane, rank } = relayOf(outcome, compat);
      expect(countingBreak(plane.eventIds, 1)).toBe('');
      expect(countingBreak(plane.sequences, 0)).toBe('');
      expect(rank.last_event_id ?? '0').toBe(String(plane.eventIds.length));
      expect(exitCode).toBe(0);
    });
  });
});
