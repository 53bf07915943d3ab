import { map, NEVER, type SchedulerLike } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { expect, test } from 'vitest';
import { arena } from '../../src/kernel/arena.ts';
import type { PlacementBatch } from '../../src/protocol/placement-event.ts';
import { type HeartbeatOptions, insertHeartbeats } from '../../src/router/insert-heartbeats.ts';
import { removed, shown } from '../support/placements.ts';

interface Play {
  readonly mayBeat?: (nowMs: number) => boolean;
  /** When what had waited for the plane leaves. */
  readonly resumes?: string;
}

/** Every `a` of the marbles is a batch; returns when heartbeats came, in ms. */
function beats(marbles: string, { mayBeat = () => true, resumes }: Play = {}): number[] {
  const times: number[] = [];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(({ cold }) => {
    const options: HeartbeatOptions = {
      dpRank: 0,
      mayBeat: () => mayBeat(scheduler.now()),
      resumed$: resumes === undefined ? NEVER : cold(resumes).pipe(map(() => undefined)),
      scheduler,
      nowMs: () => scheduler.now(),
    };
    let batches = 0;
    const native$ = cold(marbles).pipe(
      map((): PlacementBatch => {
        arena.reset();
        return [removed([BigInt(++batches)])];
      }),
    );
    native$.pipe(insertHeartbeats(options)).subscribe((batch) => {
      const text = batch.map(shown).join();
      if (text === 'R []') times.push(scheduler.now());
      else expect(text).toBe(`R [${batches}]`);
    });
  });
  return times;
}

test('after the last batch there are beats at 0.5, 2 and 10 s of quiet, and no more', () => {
  expect(beats('a 60s |')).toEqual([500, 2000, 10_000]);
});

test('before the first batch there is none', () => {
  expect(beats('60s |')).toEqual([]);
});

test.each([
  [400, []],
  [1000, [500]],
  [3000, [500, 2000]],
  [20_000, [500, 2000, 10_000]],
])('a batch after %d ms begins the row anew', (afterMs, before) => {
  const row = [500, 2000, 10_000].map((ms) => afterMs + ms);
  expect(beats(`a ${afterMs - 1}ms a 60s |`)).toEqual([...before, ...row]);
});

test('a stream without pauses has none', () => {
  expect(beats(`${'a 399ms '.repeat(40)}|`)).toEqual([]);
});

test('a beat that is due at a bad moment is left out, and those after it come in their time', () => {
  expect(beats('a 60s |', { mayBeat: (nowMs) => nowMs > 1000 })).toEqual([2000, 10_000]);
});

test('what had waited for the plane begins a row when it leaves', () => {
  const row = [3500, 5000, 13_000];
  expect(beats('a 60s |', { resumes: '3s r' })).toEqual([500, 2000, ...row]);
  expect(beats('60s |', { resumes: '3s r' })).toEqual([]);
});

test('the end of the stream ends the row', () => {
  expect(beats('a 600ms |')).toEqual([500]);
});

test('a heartbeat is of the rank and the device tier, and of no blocks', () => {
  const passed: PlacementBatch[] = [];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(({ cold }) => {
    const nowMs = (): number => scheduler.now();
    const options = { dpRank: 3, mayBeat: () => true, resumed$: NEVER, scheduler, nowMs };
    cold('a 600ms |', { a: [removed([1n])] })
      .pipe(insertHeartbeats(options))
      .subscribe((batch) => void passed.push(batch));
  });
  const [[batch], [heartbeat]] = passed as [PlacementBatch, PlacementBatch];
  expect(heartbeat).toMatchObject({ type: 'removed', dpRank: 3, storageTier: 'device' });
  expect([batch?.isHeartbeat, heartbeat?.isHeartbeat]).toEqual([false, true]);
});

test('a wall clock that is set back holds up no beat', () => {
  const scheduler = new TestScheduler(() => undefined);
  let beatCount = 0;
  scheduler.run(({ cold }) => {
    const nowMs = (): number => scheduler.now();
    const setBack: SchedulerLike = {
      now: () => -scheduler.now(),
      schedule: scheduler.schedule.bind(scheduler),
    };
    const native$ = cold('a 60s |').pipe(map((): PlacementBatch => [removed([1n])]));
    native$
      .pipe(
        insertHeartbeats({
          dpRank: 0,
          mayBeat: () => true,
          resumed$: NEVER,
          scheduler: setBack,
          nowMs,
        }),
      )
      .subscribe((batch) => {
        if (batch.map(shown).join() === 'R []') beatCount++;
      });
  });
  expect(beatCount).toBe(3);
});
