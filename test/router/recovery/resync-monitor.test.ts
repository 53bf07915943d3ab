import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OutputHold } from '../../../src/router/recovery/query-service.ts';
import { ResyncMonitor } from '../../../src/router/recovery/resync-monitor.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Trial {
  readonly monitor: ResyncMonitor;
  lost: number;
  /** Seconds after the start at which a re-sync was due. */
  readonly resyncs: number[];
}

function start(quietMs = 30_000): Trial {
  const startMs = Date.now();
  const resyncs: number[] = [];
  const trial: Trial = {
    lost: 7,
    resyncs,
    monitor: new ResyncMonitor({
      quietMs,
      lostMessages: () => trial.lost,
      onResync: () => void resyncs.push((Date.now() - startMs) / 1000),
    }),
  };
  return trial;
}

/** Messages get lost on the way, and one left beside an answer. */
function missBesideAnswer(monitor: ResyncMonitor): void {
  monitor.notePassed();
  monitor.noteRepair();
}

interface WatchedHold {
  hold: OutputHold;
  ended: number;
  tellHeld: () => void;
  tellPassed: () => void;
}

/** A hold of no output, that tells what a test wants it to. */
function watchedHold(monitor: ResyncMonitor): WatchedHold {
  const told: Omit<WatchedHold, 'hold'> = {
    ended: 0,
    tellHeld: () => undefined,
    tellPassed: () => undefined,
  };
  const hold = monitor.watching({
    isHolding: false,
    idle: async () => undefined,
    begin: (onHeld, onPassed) => {
      Object.assign(told, { tellHeld: onHeld, tellPassed: onPassed });
      return () => void told.ended++;
    },
  });
  return Object.assign(told, { hold });
}

const seconds = (count: number): void => void vi.advanceTimersByTime(count * 1000);

test('queries that met nothing cause no re-sync', () => {
  const { monitor, resyncs } = start();
  monitor.noteQuery();
  seconds(100);
  expect(resyncs).toEqual([]);
});

test.each<[string, (trial: Trial) => void]>([
  ['held output', ({ monitor }) => monitor.noteHeld()],
  ['an overrun', ({ monitor }) => monitor.noteOverrun()],
  ['a lost message', (trial) => void trial.lost++],
  ['a repair beside which a message left', ({ monitor }) => missBesideAnswer(monitor)],
])('a burst that met %s causes one, 30 s after its last query', (_, meet) => {
  const trial = start();
  trial.monitor.noteQuery();
  seconds(20);
  meet(trial);
  trial.monitor.noteQuery();
  seconds(29);
  trial.monitor.noteQuery();
  seconds(300);
  expect(trial.resyncs).toEqual([79]);
});

test.each<[string, (monitor: ResyncMonitor) => void]>([
  ['left beside answers, but none was missed', (monitor) => monitor.notePassed()],
  ['were missed, but none left beside an answer', (monitor) => monitor.noteRepair()],
])('a burst in which messages %s causes none', (_, meet) => {
  const { monitor, resyncs } = start();
  monitor.noteQuery();
  meet(monitor);
  seconds(100);
  // The next burst knows nothing of it.
  monitor.noteQuery();
  monitor.notePassed();
  seconds(100);
  monitor.noteQuery();
  monitor.noteRepair();
  seconds(100);
  expect(resyncs).toEqual([]);
});

test('a loss before the burst is what the query repairs', () => {
  const trial = start();
  trial.lost++;
  trial.monitor.noteQuery();
  seconds(100);
  expect(trial.resyncs).toEqual([]);
});

test('the dumps that follow a re-sync cause the next one only by a loss, later each time', () => {
  const trial = start();
  const { monitor, resyncs } = trial;
  monitor.noteQuery();
  monitor.noteHeld();
  seconds(30);
  expect(resyncs).toEqual([30]);
  monitor.noteQuery();
  trial.lost++;
  seconds(30);
  expect(resyncs).toEqual([30, 60]);
  monitor.noteQuery();
  monitor.noteOverrun();
  seconds(60);
  expect(resyncs).toEqual([30, 60, 120]);
  monitor.noteQuery();
  missBesideAnswer(monitor);
  seconds(120);
  expect(resyncs).toEqual([30, 60, 120, 240]);
  monitor.noteQuery();
  monitor.noteHeld();
  seconds(1000);
  expect(resyncs).toEqual([30, 60, 120, 240]);
  // A clean burst ends the row.
  monitor.noteQuery();
  monitor.noteHeld();
  seconds(30);
  expect(resyncs).toHaveLength(5);
});

test('an overrun of an answer that outlasts its burst is a burst of its own', () => {
  const { monitor, resyncs } = start(1000);
  monitor.noteQuery();
  seconds(5);
  monitor.noteOverrun();
  seconds(1);
  expect(resyncs).toEqual([6]);
  monitor.stop();
  monitor.noteOverrun();
  seconds(100);
  expect(resyncs).toEqual([6]);
});

test('a hold that is watched tells its answers, and those that output waits for', () => {
  const { monitor, resyncs } = start();
  const told = watchedHold(monitor);
  told.hold.begin(false)(0);
  seconds(100);
  expect([resyncs, told.ended]).toEqual([[], 1]);
  told.hold.begin(false);
  told.tellHeld();
  seconds(30);
  expect(resyncs).toEqual([130]);
});

test('a hold that is watched tells repairs, and what passes beside an answer', () => {
  const { monitor, resyncs } = start();
  const told = watchedHold(monitor);
  told.hold.begin(true);
  seconds(100);
  told.hold.begin(false);
  told.tellPassed();
  seconds(100);
  expect(resyncs).toEqual([]);
  told.hold.begin(true);
  told.tellPassed();
  seconds(30);
  expect(resyncs).toEqual([230]);
});

test('with a quiet time of 0 none is ever due', () => {
  const { monitor, resyncs } = start(0);
  monitor.noteQuery();
  monitor.noteOverrun();
  seconds(1000);
  expect(resyncs).toEqual([]);
});

test('nothing is due after the stop', () => {
  const { monitor, resyncs } = start();
  monitor.noteQuery();
  monitor.noteHeld();
  monitor.stop();
  seconds(100);
  expect(resyncs).toEqual([]);
});
