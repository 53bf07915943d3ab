/** One model's subscription: what it asks, when it asks again, and what it believes meanwhile. */
import { unpack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { SourceMetrics } from '../../../src/metrics/source-metrics.ts';
import {
  ackFrames,
  cancelFrames,
  subscribeFrames,
} from '../../../src/stores/lmcache-stream/stream-frames.ts';
import { StreamView } from '../../../src/stores/lmcache-stream/stream-view.ts';
import { StreamSubscription } from '../../../src/stores/lmcache-stream/subscription.ts';
import { ObjectState } from '../../../src/stores/objects/object-state.ts';
import { SimulatedStoreClock } from '../../simulation/store-clock.ts';
import {
  type BatchFields,
  batchPayload,
  framesOf,
  INCARNATION,
  removedRecord,
  storedRecord,
  streamCaptures,
} from '../../support/lmcache-stream.ts';

const ONE = Buffer.alloc(32, 1);
const TWO = Buffer.alloc(32, 2);

class Trial {
  readonly clock = new SimulatedStoreClock();
  readonly metrics = new SourceMetrics();
  readonly losses: string[] = [];
  readonly failures: string[] = [];
  readonly sent: (readonly Buffer[])[] = [];
  readonly deferred: (() => void)[] = [];
  readonly state = new ObjectState({
    maxObjects: 10_000,
    maxKeyBytes: 1_000_000,
    maxScopes: 4,
    maxAttributeSets: 4,
    onChange: () => undefined,
  });
  readonly view = new StreamView({
    modelName: 'm',
    state: this.state,
    metrics: this.metrics,
    feed: null,
    onLoss: (cause) => this.losses.push(cause),
    defer: (portion) => this.deferred.push(portion),
  });
  readonly subscription = new StreamSubscription({
    view: this.view,
    metrics: this.metrics,
    clock: this.clock,
    instanceId: 77,
    modelName: 'm',
    pageRecords: 8,
    send: (frames) => this.sent.push(frames),
    onFailure: (reason) => this.failures.push(reason),
  });

  /** What was sent since, as a line each. */
  sentLines(): string[] {
    return this.sent.splice(0).map((frames) => {
      const [, operation, last] = frames;
      if (operation?.length === 0) return String(last);
      return frames
        .slice(1)
        .map((frame) => unpack(frame))
        .join(' ');
    });
  }

  linked(): this {
    this.subscription.takeLink(true);
    return this;
  }

  /** Answers the last subscription. */
  answer(fields: BatchFields = {}): void {
    this.subscription.take([this.uid, this.#operation, batchPayload(fields)]);
  }

  end(): void {
    this.subscription.take([this.uid, this.#operation]);
  }

  uid: Buffer = Buffer.alloc(0);
  #operation: Buffer = Buffer.alloc(0);

  note(): string[] {
    for (const frames of this.sent) {
      if (frames.length !== 6) continue;
      this.uid = frames[0] as Buffer;
      this.#operation = frames[1] as Buffer;
    }
    return this.sentLines();
  }
}

const ask = (cursor: number, page = 8): string => `subscribe_kv_events 77 m ${cursor} ${page}`;
const stored = { next_cursor: 5, events: [storedRecord(5, ONE, null, [1, 2])] };

describe('frames are those of a real client', () => {
  test.each(
    streamCaptures
      .filter(({ decoded }) => decoded.kind === 'rpc-request')
      .map((capture) => [capture.case, capture] as const),
  )('%s', (_, capture) => {
    const [uid, operation, ...rest] = capture.decoded.parts as [number, string, ...unknown[]];
    const [instanceId, modelName, cursor, pageRecords] = rest as [number, string, number, number];
    const made =
      operation === 'subscribe_kv_events'
        ? subscribeFrames({ uid, instanceId, modelName, cursor, pageRecords })
        : rest[0] === 'ack'
          ? ackFrames(uid)
          : cancelFrames(uid);
    expect(made.map((frame) => frame.toString('hex'))).toEqual(
      framesOf(capture).map((frame) => frame.toString('hex')),
    );
  });

  test('a cursor and an instance above 2^32 are integers', () => {
    const large = { uid: 1, instanceId: 2 ** 47, modelName: 'm', cursor: 2 ** 40, pageRecords: 1 };
    const [, , instance, , cursor] = subscribeFrames(large);
    expect([instance?.[0], cursor?.[0]]).toEqual([0xd3, 0xd3]);
    expect(cursor?.readBigInt64BE(1)).toBe(2n ** 40n);
  });
});

test('one batch is asked for at a time, and the next from where it ended', () => {
  const trial = new Trial().linked();
  expect(trial.note()).toEqual([ask(0)]);
  trial.answer(stored);
  expect(trial.sentLines()).toEqual(['ack']);
  expect([trial.subscription.state, trial.view.objects]).toEqual(['live', 1]);
  trial.answer({ next_cursor: 9, events: [removedRecord(7, [ONE, TWO])] });
  expect(trial.sentLines()).toEqual(['ack']);
  expect(trial.view.objects).toBe(0);
  trial.subscription.takeLink(false);
  trial.subscription.takeLink(true);
  expect(trial.note()).toEqual([ask(9)]);
});

test('a server that says nothing is asked again, ever more seldom', async () => {
  const trial = new Trial().linked();
  const asked: number[] = [];
  for (let second = 0; second < 400; second++) {
    const lines = trial.note().filter((line) => line.startsWith('subscribe'));
    if (lines.length > 0) asked.push(second);
    await trial.clock.run(1000);
  }
  expect(asked.slice(0, 6)).toEqual([0, 11, 22, 34, 48, 66]);
  expect(asked.length).toBeLessThan(12);
  expect(new Set(trial.failures)).toEqual(new Set(['no_answer']));
});

test('pings go out well before a server ends a silent subscription, and only over a link', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  await trial.clock.run(100_000);
  expect(trial.sentLines().filter((line) => line === '22 77')).toHaveLength(5);
  trial.subscription.takeLink(false);
  await trial.clock.run(100_000);
  expect(trial.sentLines()).toEqual([]);
});

test('after an end it subscribes again from where it was', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.note();
  trial.end();
  expect(trial.subscription.state).toBe('waiting');
  // What still comes for the one that has ended is not looked at.
  trial.answer({ next_cursor: 99 });
  await trial.clock.run(1000);
  expect(trial.note()).toEqual([ask(5)]);
  expect(trial.view.objects).toBe(1);
});

test('another incarnation gives all up and reads the log from its start', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.note();
  trial.subscription.takeLink(false);
  trial.subscription.takeLink(true);
  trial.note();
  const other = { incarnation: INCARNATION + 1n };
  trial.answer({ ...stored, ...other, next_cursor: 6, events: [storedRecord(6, TWO, null, [3])] });
  expect(trial.view.objects).toBe(0);
  expect(trial.note()).toEqual(['cancel', ask(0)]);
  trial.answer({ ...stored, ...other });
  expect([trial.view.objects, trial.metrics.restarts, trial.losses]).toEqual([1, 1, ['restart']]);
});

test('a loss gives up what was told before, and not what stands behind it', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.note();
  trial.answer({ lost: true, next_cursor: 8, events: [storedRecord(8, TWO, null, [3])] });
  expect([trial.view.objects, trial.metrics.lostMessages, trial.losses]).toEqual([1, 1, ['gap']]);
  expect(trial.sentLines()).toEqual(['ack']);
});

test('a log that begins late is no loss for who has been told nothing yet', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer({ ...stored, lost: true });
  expect([trial.view.objects, trial.metrics.lostMessages]).toEqual([1, 0]);
});

test('a removal that cannot be read gives up what stood before it', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  const unreadable = { ...removedRecord(6, []), block_hashes: 5 };
  trial.answer({ next_cursor: 7, events: [unreadable, storedRecord(7, TWO, null, [3])] });
  expect([trial.view.objects, trial.losses]).toEqual([1, ['unreadable']]);
  expect(trial.metrics.droppedEvents.bad_field).toBe(1);
});

test('a hash stored twice is gone at the first removal', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer({ ...stored, events: [...stored.events, ...stored.events] });
  expect(trial.metrics.events.stored).toEqual({ received: 2, applied: 1, repeated: 1 });
  trial.answer({ next_cursor: 9, events: [removedRecord(9, [ONE])] });
  expect(trial.view.objects).toBe(0);
});

test('a server that records nothing is asked once a minute', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer({ enabled: false });
  trial.end();
  expect([trial.subscription.state, trial.failures]).toEqual(['disabled', ['disabled']]);
  await trial.clock.run(59_000);
  expect(trial.note().filter((line) => line.startsWith('sub'))).toEqual([]);
  await trial.clock.run(2000);
  expect(trial.note().filter((line) => line.startsWith('sub'))).toEqual([ask(0)]);
});

test('what nobody confirms for a minute is given up, and read again with the whole log', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.subscription.takeLink(false);
  await trial.clock.run(59_000);
  expect(trial.view.objects).toBe(1);
  await trial.clock.run(2000);
  expect(trial.view.objects).toBe(0);
  trial.note();
  trial.linked();
  expect(trial.note()).toEqual([ask(0)]);
});

test('what is given up while an answer is on its way is asked for once more, and that one awaited', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.subscription.takeLink(false);
  await trial.clock.run(55_000);
  trial.linked();
  await trial.clock.run(6000);
  expect(trial.note().filter((line) => line.startsWith('sub'))).toEqual([ask(5), ask(0)]);
  trial.answer(stored);
  await trial.clock.run(30_000);
  expect([trial.subscription.state, trial.failures, trial.view.objects]).toEqual(['live', [], 1]);
});

test('a link that comes back in time keeps everything', async () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.subscription.takeLink(false);
  await trial.clock.run(50_000);
  trial.linked();
  trial.note();
  trial.answer({ next_cursor: 5 });
  await trial.clock.run(100_000);
  expect([trial.view.objects, trial.subscription.state]).toEqual([1, 'live']);
});

test('batches that are too large are asked for in smaller pages', async () => {
  const trial = new Trial().linked();
  trial.note();
  const events = Array.from({ length: 1025 }, () => removedRecord(1, [ONE]));
  trial.answer({ events });
  expect([trial.metrics.malformed.oversize, trial.failures]).toEqual([1, ['malformed']]);
  await trial.clock.run(1000);
  expect(trial.note()).toEqual(['cancel', ask(0, 4)]);
});

test('a link that ends instead of an answer is followed by smaller pages, until one comes', () => {
  const trial = new Trial();
  const relink = (): string[] => {
    trial.subscription.takeLink(false);
    return trial.linked().note();
  };
  expect(trial.linked().note()).toEqual([ask(0)]);
  expect([relink(), relink(), relink(), relink()].flat()).toEqual([
    ask(0, 4),
    ask(0, 2),
    ask(0, 1),
    ask(0, 1),
  ]);
  trial.answer(stored);
  trial.sentLines();
  expect(relink()).toEqual([ask(5)]);
});

describe('a record of very many removals', () => {
  const PORTION = 4096;
  const hashes = Array.from({ length: 10_000 }, (_, at) => Buffer.from(`hash ${at}`));

  function evicted(): Trial {
    const trial = new Trial().linked();
    trial.note();
    for (let at = 0; at < 10; at++) {
      const page = hashes.slice(at * 1000, at * 1000 + 1000);
      trial.answer({ events: page.map((hash) => storedRecord(1, hash, null, [1, 2])) });
    }
    trial.sentLines();
    trial.answer({ next_cursor: 9, events: [removedRecord(9, hashes)] });
    return trial;
  }

  test('is applied a portion at a time, and acknowledged behind its last', () => {
    const trial = evicted();
    const steps = [trial.view.objects];
    for (let turn = trial.deferred.shift(); turn !== undefined; turn = trial.deferred.shift()) {
      expect(trial.sentLines()).toEqual([]);
      turn();
      steps.push(trial.view.objects);
    }
    expect(steps).toEqual([10_000 - PORTION, 10_000 - 2 * PORTION, 0]);
    expect([trial.sentLines(), trial.view.cursor]).toEqual([['ack'], 9]);
  });

  test('is done before the next batch, and not acknowledged for another subscription', () => {
    const trial = evicted();
    trial.subscription.takeLink(false);
    trial.linked();
    expect(trial.note()).toEqual([ask(9)]);
    trial.answer({
      next_cursor: 10,
      events: [storedRecord(10, hashes[9999] as Buffer, null, [1])],
    });
    expect([trial.view.objects, trial.sentLines()]).toEqual([1, ['ack']]);
    for (const turn of trial.deferred.splice(0)) turn();
    expect([trial.view.objects, trial.sentLines(), trial.deferred]).toEqual([1, [], []]);
  });

  test.each(['giveUp', 'stop'] as const)('has no effect behind a %s', (what) => {
    const trial = evicted();
    if (what === 'stop') trial.subscription.stop();
    else trial.view.giveUp();
    const { removed } = trial.metrics.events;
    for (const turn of trial.deferred.splice(0)) turn();
    expect([removed.received, trial.deferred]).toEqual([PORTION, []]);
    expect(trial.sentLines()).toEqual(what === 'stop' ? ['cancel'] : []);
  });
});

test('frames of nobody we asked are counted or ignored', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.subscription.take([]);
  trial.subscription.take([trial.uid, Buffer.from([1]), Buffer.alloc(0)]);
  expect(trial.metrics.malformed.frames).toBe(2);
  trial.subscription.take([Buffer.from([1]), Buffer.from([22]), Buffer.from([0xc3])]);
  expect(trial.metrics.malformed.frames).toBe(2);
  expect(trial.subscription.state).toBe('asking');
});

test('a stop takes its leave', () => {
  const trial = new Trial().linked();
  trial.note();
  trial.answer(stored);
  trial.note();
  trial.subscription.stop();
  expect(trial.sentLines()).toEqual(['cancel']);
});

test('a link that comes about only behind a stop is left alone', async () => {
  const trial = new Trial();
  trial.subscription.stop();
  trial.linked();
  await trial.clock.run(100_000);
  expect([trial.sentLines(), trial.failures, trial.subscription.state]).toEqual([
    [],
    [],
    'unlinked',
  ]);
});
