/** Streams of an engine through a relay of each mode; a test for each thing that must hold. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NatsServerProcess, startNatsServer } from '../support/nats-server.ts';
import { changeDifference, countingBreak, liveDifference, storeDifference } from './compare.ts';
import { canRun, type EngineVersion } from './engines.ts';
import { type Compat, type PlayOutcome, play, relayOf, relaysOf } from './play.ts';
import { Truth } from './truth.ts';

/** With fewer a wrong count of copies could go unseen. */
const MIN_REMOVALS = 1000;

export interface Stream extends EngineVersion {
  readonly name: string;
  /** Flags of the publisher, beyond its version and block size. */
  readonly flags: readonly string[];
  readonly blockSize: number;
  readonly compat: readonly Compat[];
}

export function describeStreams(streams: readonly Stream[]): void {
  describe.each(streams)('$engine $version $name', (stream) => {
    const isRunnable = canRun(stream);
    let server: NatsServerProcess;
    let outcome: PlayOutcome;
    let truth: Truth;

    beforeAll(async () => {
      if (!isRunnable) return;
      server = await startNatsServer();
      const flags = [...stream.flags, '--block-size', String(stream.blockSize)];
      outcome = await play(server, { ...stream, flags, relays: relaysOf(stream.compat) });
      truth = new Truth(outcome.truth);
      console.log(figures(stream, outcome, truth));
    });
    afterAll(() => server?.stop());

    test.skipIf(!isRunnable)('the engine counts exactly, and removes often enough to tell', () => {
      expect(truth.removals).toBeGreaterThanOrEqual(MIN_REMOVALS);
      expect(truth.strayRemovals).toBe(0);
      expect(outcome.truth).toHaveLength(outcome.published.batches);
    });

    describe.skipIf(!isRunnable).each(stream.compat)('%s', (compat) => {
      test('loses and rejects nothing, and ends cleanly', () => {
        const { exitCode, plane, rank } = relayOf(outcome, compat);
        expect(rank.counters).toMatchObject({ malformed: 0, lost_batches: 0 });
        expect(rank.last_event_id).toBe(String(plane.eventIds.at(-1)));
        expect(exitCode).toBe(0);
      });

      test('numbers events from 1 and messages from 0, without holes', () => {
        const { plane } = relayOf(outcome, compat);
        expect(countingBreak(plane.eventIds, 1)).toBe('');
        expect(countingBreak(plane.sequences, 0)).toBe('');
        expect([...plane.ranks]).toEqual([0]);
      });

      test('leaves a router with the blocks that the engine holds', () => {
        const { plane, rank } = relayOf(outcome, compat);
        expect(liveDifference(plane, truth)).toEqual({ missing: [], wrong: [] });
        expect(rank.blocks).toEqual(plane.indexedByTier());
      });

      test('tells a router of each change in turn, and of no other', () => {
        expect(changeDifference(relayOf(outcome, compat).plane, truth)).toBe('');
      });

      test("publishes the engine's stores, whole and in order", () => {
        const { plane } = relayOf(outcome, compat);
        expect(storeDifference(plane, truth)).toBe('');
        expect(plane.unsteadyTokens).toEqual([]);
      });
    });
  });
}

/** One line for the reader of the log. */
function figures(
  { engine, version, name }: Stream,
  { published, relays, seconds }: PlayOutcome,
  { eventCount, removals, clears }: Truth,
): string {
  const planes = relays.map(({ name: relay, plane, rank }) => {
    const { suppressed_removes: suppressed } = rank.counters;
    return `${relay} ${plane.eventIds.length} events (${suppressed} removes held back)`;
  });
  return [
    `${engine} ${version} ${name}: ${published.batches} batches`,
    `${published.events} events, ${eventCount} of main groups`,
    `${removals} removals, ${clears} clears`,
    ...planes,
    `${seconds.toFixed(1)} s`,
  ].join(', ');
}
