/** When the master is asked, on a clock that the test turns. */
import { expect, test } from 'vitest';
import { MasterError } from '../../../src/stores/mooncake/master.ts';
import { Reconciler } from '../../../src/stores/mooncake/reconciler.ts';

class Reconciled {
  nowMs = 0;
  isAway = false;
  readonly runsAtMs: number[] = [];
  readonly failures: number[] = [];
  /** Requests one more run from within the next. */
  isBusy = false;
  readonly reconciler: Reconciler;
  #due: { callback: () => void; atMs: number } | null = null;

  constructor() {
    this.reconciler = new Reconciler({
      clock: {
        nowMs: () => this.nowMs,
        schedule: (callback, delayMs) => {
          const due = { callback, atMs: this.nowMs + delayMs };
          this.#due = due;
          return () => {
            if (this.#due === due) this.#due = null;
          };
        },
      },
      everyMs: 0,
      run: async () => {
        this.runsAtMs.push(this.nowMs);
        if (this.isBusy) this.reconciler.request();
        if (this.isAway) throw new MasterError('unreachable', 'away');
      },
      onComplete: () => undefined,
      onFailure: (failures) => this.failures.push(failures),
    });
  }

  /** `each` is done every 10 ms. */
  async turn(untilMs: number, each: () => void): Promise<void> {
    for (; this.nowMs < untilMs; this.nowMs += 10) {
      each();
      const due = this.#due;
      if (due !== null && due.atMs <= this.nowMs) {
        this.#due = null;
        due.callback();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test('losses while a failed run waits for its next attempt do not hasten it', async () => {
  const trial = new Reconciled();
  trial.isAway = true;
  await trial.turn(3000, () => trial.reconciler.request());
  expect(trial.runsAtMs).toEqual([0, 500, 1500]);
  expect(trial.failures).toEqual([1, 2, 3]);
});

test('losses without end ask for a run a second', async () => {
  const trial = new Reconciled();
  trial.isBusy = true;
  await trial.turn(3000, () => trial.reconciler.request());
  expect(trial.runsAtMs).toEqual([0, 1000, 2000]);
});

test('a new link tells that the master may be back: it is asked soon', async () => {
  const trial = new Reconciled();
  trial.isAway = true;
  trial.reconciler.request();
  await trial.turn(8000, () => undefined);
  expect(trial.runsAtMs.at(-1)).toBe(7500);
  trial.isAway = false;
  trial.reconciler.requestBehindLink(300);
  await trial.turn(8500, () => undefined);
  expect(trial.runsAtMs.at(-1)).toBe(8300);
});
