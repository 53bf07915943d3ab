/** The stream on a clock and a transport that are played: what a simulation needs of it. */
import { expect, test } from 'vitest';
import { EngineStream } from '../../src/listener/engine-stream.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';

class Rig {
  nowMs = 0;
  readonly done: string[] = [];
  readonly stream: EngineStream;
  #timers: { atMs: number; callback: () => void }[] = [];

  constructor(onAsk: (rig: Rig, id: number) => void = () => undefined) {
    this.stream = new EngineStream({
      options: {
        canAsk: true,
        clearsOnGap: false,
        clearsOnRestart: true,
        holdBatches: 10,
        holdBytes: 1000,
        idleMs: 1000,
        cooldownMs: 5000,
      },
      metrics: new RelayMetrics(),
      transport: {
        ask: (id, start) => {
          this.done.push(`ask ${start}`);
          onAsk(this, id);
        },
        drop: () => this.done.push('drop'),
      },
      clock: {
        nowMs: () => this.nowMs,
        schedule: (callback, delayMs) => {
          const timer = { atMs: this.nowMs + delayMs, callback };
          this.#timers.push(timer);
          return () => {
            this.#timers = this.#timers.filter((one) => one !== timer);
          };
        },
      },
      onMessage: ({ sequence }) => this.done.push(String(sequence)),
      onGap: (lostBatches) => this.done.push(`gap ${lostBatches}`),
      onRestart: () => this.done.push('restart'),
    });
  }

  get timers(): number {
    return this.#timers.length;
  }

  live(sequence: number): void {
    const payload = Buffer.of(sequence);
    this.stream.takeLive({ sequence: BigInt(sequence), payload, arrivedAtMs: this.nowMs });
  }

  replayed(id: number, sequence: number): void {
    const payload = Buffer.of(sequence);
    this.stream.takeReplayed(id, { sequence: BigInt(sequence), payload, arrivedAtMs: this.nowMs });
  }

  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    for (;;) {
      const next = this.#timers.sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.shift();
      this.nowMs = next.atMs;
      next.callback();
    }
    this.nowMs = endMs;
  }
}

test('batches, asks and gaps are done in the order of the sequencer', () => {
  const rig = new Rig();
  rig.stream.takeLink(true);
  rig.live(0);
  rig.stream.takeReplayEnd(1);
  rig.pass(200);
  rig.live(3);
  rig.replayed(2, 2);
  expect(rig.done).toEqual(['ask 0', '0', 'ask 1', 'gap 1', '2', '3']);
});

test('a transport that answers within the ask is no trouble', () => {
  const rig = new Rig((self, id) => {
    for (const sequence of [0, 1]) self.replayed(id, sequence);
    self.stream.takeReplayEnd(id);
  });
  rig.stream.takeLink(true);
  rig.live(2);
  expect(rig.done).toEqual(['ask 0', '0', '1', '2']);
  expect(rig.stream.isCaughtUp).toBe(true);
});

test('one timer at most runs, and none in a stream that is over', () => {
  const rig = new Rig();
  rig.stream.takeLink(true);
  rig.stream.takeReplayEnd(1);
  expect(rig.timers).toBe(0);
  for (let sequence = 0; sequence < 100; sequence++) {
    rig.live(sequence);
    rig.pass(10);
  }
  expect(rig.timers).toBe(1);
  rig.pass(2000);
  expect(rig.done.at(-1)).toBe('ask 100');
  rig.stream.finish();
  expect(rig.timers).toBe(0);
  rig.stream.takeLink(false);
  rig.stream.takeLink(true);
  expect(rig.done.at(-1)).toBe('drop');
  expect(rig.timers).toBe(0);
});

test('a first replay without an end counts as over after 10 s', () => {
  const rig = new Rig();
  rig.stream.takeLink(true);
  for (let sequence = 0; sequence < 12; sequence++) {
    expect(rig.stream.isCaughtUp).toBe(sequence > 10);
    rig.replayed(1, sequence);
    rig.pass(999);
  }
});
