/** The bus behind a link that loses messages: whatever is lost live, each event counts once where it can be replayed. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EngineStream, type ReplayTransport } from '../../../src/listener/engine-stream.ts';
import { readFrames } from '../../../src/listener/frames.ts';
import { RelayMetrics } from '../../../src/metrics/relay-metrics.ts';
import { BusView } from '../../../src/stores/lmcache/bus-view.ts';
import { bridgeFrames, requestStart } from '../../support/bridge-message.ts';

/** Time stands still but for deadlines, which come one after the other. */
class TestClock {
  #now = 0;
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  nowMs(): number {
    return this.#now;
  }

  schedule(run: () => void, delayMs: number): () => void {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  run(untilMs: number): void {
    for (;;) {
      this.#timers.sort((one, other) => one.at - other.at);
      const [next] = this.#timers;
      if (next === undefined || next.at > untilMs) break;
      this.#timers.shift();
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = untilMs;
  }
}

interface Played {
  readonly view: BusView;
  readonly metrics: RelayMetrics;
  readonly sessions: readonly string[];
}

/** One life after the other; `lost` tells which messages of each do not arrive live. */
function played(lives: readonly (readonly boolean[])[], canAsk: boolean): Played {
  const clock = new TestClock();
  const metrics = new RelayMetrics();
  const view = new BusView({
    sampleRate: 1,
    maxTracked: 1000,
    maxPending: 1000,
    timeoutS: 1e6,
    requestTimeoutS: 1e6,
    maxLabelValues: 10,
  });
  const sessions: string[] = [];
  let kept: Buffer[][] = [];
  const message = (frames: readonly Buffer[]) => {
    const read = readFrames(frames, 'safe', clock.nowMs());
    if (typeof read === 'string') throw new Error(read);
    return read;
  };
  const transport: ReplayTransport = {
    ask: (id, start) => {
      clock.schedule(() => {
        for (const frames of kept.slice(Number(start))) stream.takeReplayed(id, message(frames));
        stream.takeReplayEnd(id);
      }, 1);
    },
    drop: () => undefined,
  };
  const stream = new EngineStream({
    options: {
      canAsk,
      clearsOnGap: false,
      clearsOnRestart: false,
      holdBatches: 1000,
      holdBytes: 1 << 20,
      idleMs: 1000,
      cooldownMs: 1000,
    },
    metrics,
    transport,
    clock,
    onMessage: ({ payload }) => {
      expect(view.take(payload)).toBeNull();
    },
    onGap: () => undefined,
    onRestart: () => view.restart(),
  });
  const pass = (milliseconds: number): void => clock.run(clock.nowMs() + milliseconds);
  for (const [life, lost] of lives.entries()) {
    kept = [];
    stream.takeLink(true);
    pass(100);
    for (const [number, isLost] of lost.entries()) {
      const session = `life ${life}, request ${number}`;
      const at = life * 1000 + number;
      const frames = bridgeFrames(number, [requestStart(session, at)], { sentAt: at });
      kept.push(frames);
      sessions.push(session);
      if (!isLost) stream.takeLive(message(frames));
      pass(10);
    }
    // Long enough for a lost last message to be looked for.
    pass(60_000);
    stream.takeLink(false);
  }
  stream.finish();
  return { view, metrics, sessions };
}

const losses = fc.array(fc.boolean(), { minLength: 1, maxLength: 30 });
/** The first message arrives: of a life that nothing was heard of nobody can know. */
const heard = losses.map((lost) => [false, ...lost]);

test('with replay every event of every life counts, once', () => {
  fc.assert(
    fc.property(fc.array(heard, { minLength: 1, maxLength: 4 }), (lives) => {
      const { view, metrics, sessions } = played(lives, true);
      expect(view.checker.events.get('MP_REQUEST_START')).toBe(sessions.length);
      expect([metrics.lostBatches, metrics.engineRestarts]).toEqual([0, lives.length - 1]);
      expect(view.requests.inFlight).toBe(lives.at(-1)?.length);
    }),
  );
});

test('without replay what was lost before a later message is counted as lost', () => {
  fc.assert(
    fc.property(losses, (lost) => {
      const { view, metrics } = played([lost], false);
      const arrived = lost.filter((isLost) => !isLost).length;
      expect(view.checker.events.get('MP_REQUEST_START') ?? 0).toBe(arrived);
      // Numbers count from 0, so that what came before the first is known to be missing too.
      const known = lost.slice(0, lost.lastIndexOf(false) + 1);
      expect(metrics.lostBatches).toBe(known.filter(Boolean).length);
    }),
  );
});
