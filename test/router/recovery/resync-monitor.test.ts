import { afterEach, beforeEach, expect, test, vi } from 'vitest';
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
  monitor.noteHeld();
  seconds(1000);
  expect(resyncs).toEqual([30, 60, 120]);
  // A clean burst ends the row.
  monitor.noteQuery();
  monitor.noteHeld();
  seconds(30);
  expect(resyncs).toHaveLength(4);
});

test('a hold that is watched tells its answers, and those that output waits for', () => {
  const { monitor, resyncs } = start();
  let tellHeld = (): void => undefined;
  let ended = 0;
  const hold = monitor.watching({
    isHolding: false,
    idle: async () => undefined,
    begin: (onHeld) => {
      tellHeld = onHeld;
      return () => void ended++;
    },
  });
  hold.begin()(0);
  seconds(100);
  expect([resyncs, ended]).toEqual([[], 1]);
  hold.begin();
  tellHeld();
  seconds(30);
  expect(resyncs).toEqual([130]);
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
