/** Which events share a message, and when it leaves. */
import { unpack } from 'msgpackr';
import { Subject } from 'rxjs';
import { expect, test } from 'vitest';
import { U64List } from '../../src/kernel/u64-list.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { numberEvents } from '../../src/processor/number-events.ts';
import { type PlacementBatch, PlacementEvent } from '../../src/protocol/placement-event.ts';
import { Publisher } from '../../src/protocol/publisher.ts';
import { MemorySink } from '../../src/sinks/memory.ts';
import { publish } from '../../src/sinks/publish.ts';
import { removed, stored } from '../support/placements.ts';

/** A publisher whose turns of the event loop end when the test says so. */
class Rig {
  readonly publisher = new Publisher({ workerId: 7n, publisherId: 4711 });
  readonly metrics = new RelayMetrics();
  readonly sink: MemorySink;
  readonly batches$ = new Subject<PlacementBatch>();
  readonly flush$ = new Subject<void>();
  #turnEnds: (() => void)[] = [];

  constructor({ joins = true, sinkBytes = Number.POSITIVE_INFINITY, maxBytes = 1e9 } = {}) {
    this.sink = new MemorySink(sinkBytes);
    const { publisher, flush$ } = this;
    const atTurnEnd = (callback: () => void): void => void this.#turnEnds.push(callback);
    const joining = joins ? { atTurnEnd, flush$ } : {};
    const options = { publisher, maxMessageBytes: () => maxBytes, ...joining };
    this.batches$
      .pipe(numberEvents({ publisher }), publish(this.sink, this.metrics, options))
      .subscribe();
  }

  write(...batches: PlacementBatch[]): this {
    for (const batch of batches) this.batches$.next(batch);
    return this;
  }

  endTurn(): this {
    for (const callback of this.#turnEnds.splice(0)) callback();
    return this;
  }

  /** A turn that brings so much that this one and the next are joined. */
  load(): this {
    this.write(...singles(20)).endTurn();
    this.sink.messages.length = 0;
    return this;
  }

  /** Publish ids by message. */
  get ids(): number[][] {
    return this.sink.messages.map(({ envelope }) => {
      const { payload } = unpack(envelope) as { payload: Buffer };
      const events = unpack(payload) as { event: { event_id: number } }[];
      return events.map(({ event }) => event.event_id);
    });
  }

  get sizes(): number[] {
    return this.ids.map((ids) => ids.length);
  }
}

let nextHash = 1n;

function singles(batches: number, events = 1): PlacementBatch[] {
  return Array.from({ length: batches }, () =>
    Array.from({ length: events }, () => stored(null, [nextHash++])),
  );
}

function storeOf(blocks: number): PlacementEvent {
  return stored(
    null,
    Array.from({ length: blocks }, () => nextHash++),
  );
}

test('without load each batch leaves at once, in a message of its own', () => {
  const rig = new Rig();
  for (let turn = 0; turn < 3; turn++) {
    rig.write(...singles(8));
    expect(rig.sizes).toEqual(new Array(8 * (turn + 1)).fill(1));
    rig.endTurn();
  }
  expect(rig.sizes).toHaveLength(24);
});

test('joined-messages: under load batches share messages of up to 128 events, until the turn ends', () => {
  const rig = new Rig();
  rig.write(...singles(8), ...singles(10, 30));
  // Four of 30 are 120; a fifth would be too much.
  expect(rig.sizes).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 120, 120]);
  rig.endTurn();
  expect(rig.sizes.slice(8)).toEqual([120, 120, 60]);
  // The next turn is taken for loaded as well, and the one behind it is not.
  rig.write(...singles(3));
  expect(rig.sizes).toHaveLength(11);
  rig.endTurn();
  expect(rig.sizes.slice(11)).toEqual([3]);
  rig.write(...singles(2));
  expect(rig.sizes.slice(12)).toEqual([1, 1]);
});

test('joined messages have the bytes of their events, numbers and ids without a hole, and the same counts', () => {
  const joined = new Rig();
  const apart = new Rig({ joins: false });
  for (let turn = 0; turn < 40; turn++) {
    const batches = Array.from({ length: 1 + ((turn * 7) % 23) }, (_, at) => [
      storeOf(1 + ((turn * at) % 40)),
      ...(at % 3 === 0 ? [removed([5n, 6n])] : []),
    ]);
    joined.write(...batches).endTurn();
    apart.write(...batches);
  }
  expect(joined.sink.messages.length).toBeLessThan(apart.sink.messages.length / 2);
  expect(joined.sink.messages.map(({ sequence }) => sequence)).toEqual([
    ...joined.sink.messages.keys(),
  ]);
  expect(eventBytes(joined)).toEqual(eventBytes(apart));
  const { publishedEvents, publishedBlocks, publishedMessages } = joined.metrics;
  expect({ publishedEvents, publishedBlocks }).toEqual({
    publishedEvents: apart.metrics.publishedEvents,
    publishedBlocks: apart.metrics.publishedBlocks,
  });
  expect(publishedMessages).toBe(joined.sink.messages.length);
  expect(joined.metrics.relayLatencySeconds.count).toBe(publishedMessages);
});

function eventBytes({ sink }: Rig): string {
  return sink.messages
    .map(({ envelope }) => {
      const { payload } = unpack(envelope) as { payload: Buffer };
      return payload.subarray((payload[0] as number) === 0xdc ? 3 : 1).toString('hex');
    })
    .join('');
}

test('8192 blocks are the most of a joined message, and 32 KiB', () => {
  const byBlocks = new Rig().load();
  const removes = Array.from({ length: 4 }, () => [
    new PlacementEvent('removed', 0, 'device', U64List.of(...new Array(2500).fill(1n)), null, 0),
  ]);
  byBlocks.write(...removes).endTurn();
  expect(byBlocks.sizes).toEqual([3, 1]);
  const byBytes = new Rig().load();
  byBytes.write([storeOf(600)], [storeOf(600)]).endTurn();
  expect(byBytes.sizes).toEqual([1, 1]);
  for (const { envelope } of byBytes.sink.messages) {
    expect(envelope.length).toBeGreaterThan(16 << 10);
    expect(envelope.length).toBeLessThan(32 << 10);
  }
});

test('a batch that needs several messages, or memory of its own, leaves behind what was joined before it', () => {
  const rig = new Rig().load();
  rig.write([storeOf(1)], [storeOf(1), storeOf(9000)], [storeOf(1)], [storeOf(2000)], [storeOf(1)]);
  expect(rig.sizes).toEqual([1, 1, 1, 1, 1]);
  rig.endTurn();
  expect(rig.ids.flat()).toEqual([21, 22, 23, 24, 25, 26]);
});

test('a limit of bytes holds for joined messages too', () => {
  const rig = new Rig({ maxBytes: 1000, sinkBytes: 1000 }).load();
  rig.write(...singles(20)).endTurn();
  expect(rig.sizes.length).toBeGreaterThan(2);
  expect(rig.sizes.reduce((sum, size) => sum + size)).toBe(20);
  expect(Math.max(...rig.sink.messages.map(({ envelope }) => envelope.length))).toBeLessThan(1001);
  expect(rig.metrics.publishFailures.payload_too_large).toBe(0);
});

test('a heartbeat is alone in its message, and counts apart', () => {
  const rig = new Rig().load();
  const heartbeat = new PlacementEvent('removed', 0, 'device', new U64List(0), null, 0);
  expect(heartbeat.isHeartbeat).toBe(true);
  rig.write([storeOf(1)], [heartbeat], [storeOf(1)]).endTurn();
  expect(rig.sizes).toEqual([1, 1, 1]);
  expect(rig.metrics.heartbeats).toBe(1);
  expect(rig.metrics.publishedEvents.removed).toBe(0);
});

test('what has been joined leaves when it is asked for, and when the stream ends', () => {
  const rig = new Rig().load();
  rig.write([storeOf(1)], [storeOf(1)]);
  expect(rig.sizes).toEqual([]);
  rig.flush$.next();
  expect(rig.sizes).toEqual([2]);
  rig.write([storeOf(1)]);
  rig.batches$.complete();
  expect(rig.sizes).toEqual([2, 1]);
  rig.endTurn();
  expect(rig.sizes).toEqual([2, 1]);
});

test('nothing of an incarnation leaves under the numbers of the next', () => {
  const rig = new Rig().load();
  rig.write([storeOf(1)]);
  rig.publisher.close();
  rig.write([storeOf(1)]).endTurn();
  rig.publisher.open(7n);
  rig.write([storeOf(1)]).endTurn();
  const [last] = rig.sink.messages.slice(-1);
  expect(last?.sequence).toBe(0);
  expect(rig.ids.at(-1)).toEqual([1]);
});
