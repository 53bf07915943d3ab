/** The object stream as a consumer follows it: deltas, ranges, snapshots taken meanwhile. */
import fc from 'fast-check';
import { unpack } from 'msgpackr';
import { expect, test } from 'vitest';
import { ObjectStreamMetrics } from '../../../src/metrics/object-metrics.ts';
import type { PlaneMessage } from '../../../src/protocol/envelope.ts';
import { decodeObjectEvent, type ObjectEvent } from '../../../src/protocol/object-event.ts';
import { NO_ATTRIBUTES } from '../../../src/stores/objects/attribute-sets.ts';
import { answerObjectRequest } from '../../../src/stores/objects/object-requests.ts';
import { ObjectState } from '../../../src/stores/objects/object-state.ts';
import { ObjectStream } from '../../../src/stores/objects/object-stream.ts';
import { fixedSeed } from '../../support/properties.ts';

const AT = { source: 'mooncake', backendId: 'b', tenantId: 'default' };
const T1 = { ...AT, tenantId: 't1' };

class Streamed {
  readonly sent: PlaneMessage[] = [];
  readonly metrics = new ObjectStreamMetrics();
  maxMessageBytes = Number.POSITIVE_INFINITY;
  readonly state: ObjectState;
  readonly stream: ObjectStream;
  #deferred: (() => void)[] = [];

  constructor(log = { maxEvents: 1000, maxBytes: 1 << 20 }) {
    this.stream = new ObjectStream(
      {
        publisherId: 2 ** 53 - 1,
        log,
        send: (message) => this.sent.push(message),
        maxMessageBytes: () => this.maxMessageBytes,
        defer: (callback) => this.#deferred.push(callback),
      },
      this.metrics,
    );
    this.state = new ObjectState({
      maxObjects: 10_000,
      maxKeyBytes: 1 << 20,
      maxScopes: 8,
      maxAttributeSets: 10,
      onChange: (change) => this.stream.push(change),
    });
  }

  endTurn(): void {
    for (const callback of this.#deferred.splice(0)) callback();
  }

  store(key: string, medium = 'cpu', at = AT): void {
    this.state.stored(at, Buffer.from(key), medium, NO_ATTRIBUTES);
  }

  remove(key: string, medium = 'cpu', at = AT): void {
    this.state.removed(at, Buffer.from(key), medium);
  }

  /** Of all messages sent, as a consumer decodes them. */
  get events(): ObjectEvent[] {
    return this.sent.flatMap(({ envelope }) => {
      const { payload } = unpack(envelope) as { payload: Buffer };
      return (unpack(payload) as { events: ObjectEvent[] }).events;
    });
  }

  ask(request: object): Record<string, unknown> {
    const answer = answerObjectRequest(
      Buffer.from(JSON.stringify(request)),
      this.state,
      this.stream,
    );
    return JSON.parse(Buffer.from(answer).toString()) as Record<string, unknown>;
  }
}

test('a message is an envelope of its own topic, with a versioned payload', () => {
  const streamed = new Streamed();
  streamed.state.stored(AT, Buffer.from('k'), 'disk', {
    ...NO_ATTRIBUTES,
    groupId: 'g',
    blockSize: 16,
  });
  streamed.store('k');
  streamed.state.cleared(AT, 'invalidated');
  expect(streamed.sent).toEqual([]);
  streamed.endTurn();
  expect(streamed.sent.map(({ sequence, eventCount }) => [sequence, eventCount])).toEqual([[0, 3]]);
  const envelope = unpack(streamed.sent[0]?.envelope as Buffer) as Record<string, unknown>;
  expect(Object.keys(envelope)).toEqual([
    'publisher_id',
    'sequence',
    'published_at',
    'topic',
    'payload',
  ]);
  expect(envelope).toMatchObject({
    publisher_id: 2n ** 53n - 1n,
    sequence: 0,
    topic: 'kv-objects',
  });
  const scope = { source: 'mooncake', backend_id: 'b', tenant_id: 'default' };
  expect(unpack(envelope.payload as Buffer)).toEqual({
    version: 1,
    events: [
      {
        event_id: 1,
        ...scope,
        type: 'stored',
        cause: 'event',
        object_key: 'k',
        medium: 'disk',
        media: ['disk'],
        group_id: 'g',
        block_size: 16,
      },
      {
        event_id: 2,
        ...scope,
        type: 'stored',
        cause: 'event',
        object_key: 'k',
        medium: 'cpu',
        media: ['cpu', 'disk'],
      },
      { event_id: 3, ...scope, type: 'cleared', cause: 'invalidated', object_count: 1 },
    ],
  });
});

test('ids count from 1 without a hole over messages, which are cut to what the plane takes', () => {
  const streamed = new Streamed();
  streamed.maxMessageBytes = 1000;
  for (let index = 0; index < 600; index++) streamed.store(`key-${index}`);
  streamed.endTurn();
  expect(streamed.sent.length).toBeGreaterThan(50);
  expect(streamed.sent.every(({ envelope }) => envelope.length <= 1000)).toBe(true);
  expect(streamed.events.map(({ event_id }) => event_id)).toEqual(
    Array.from({ length: 600 }, (_, index) => index + 1),
  );
  streamed.store('x'.repeat(2000));
  streamed.endTurn();
  expect(streamed.metrics.publishFailures.payload_too_large).toBe(1);
  expect(streamed.stream.lastEventId).toBe(601);
});

test('a range is answered from the log, page by page, and says when it reaches back too far', () => {
  const streamed = new Streamed({ maxEvents: 700, maxBytes: 1 << 20 });
  for (let index = 0; index < 1000; index++) streamed.store(`key-${index}`);
  const ids = (answer: Record<string, unknown>): string[] =>
    (answer.events as ObjectEvent[]).map(({ event_id }) => String(event_id));
  expect(streamed.ask({ start: '300' })).toEqual({
    kind: 'snapshot',
    publisher_id: '9007199254740991',
    last_event_id: '1000',
  });
  expect(ids(streamed.ask({ start: '301', end: '303' }))).toEqual(['301', '302', '303']);
  const page = streamed.ask({ start: '400' });
  expect(ids(page).length).toBe(500);
  expect(page).toMatchObject({ kind: 'events', last_event_id: '1000', next_event_id: '900' });
  expect(streamed.ask({ start: '900' })).toMatchObject({ next_event_id: null });
  expect(streamed.ask({ start: '1001' })).toMatchObject({ kind: 'too_new' });
  expect(streamed.ask({ start: '9', end: '3' })).toMatchObject({ kind: 'invalid_range' });
  for (const bad of [{}, { start: 5 }, { start: '-1' }, { snapshot: true, cursor: 'x' }, []]) {
    expect(streamed.ask(bad)).toMatchObject({ kind: 'error' });
  }
  const long = Buffer.alloc(10_000, 0x20);
  const refused = answerObjectRequest(long, streamed.state, streamed.stream);
  expect(Buffer.from(refused).toString()).toContain('error');
});

test('every answer is one that a NATS server takes by default, whatever the names are', () => {
  const streamed = new Streamed({ maxEvents: 10_000, maxBytes: 1 << 26 });
  // A control character is one byte of a name and six of JSON.
  const name = '\u0001'.repeat(1024);
  const at = { source: 'mooncake', backendId: name, tenantId: name };
  const named = { groupId: name, modelName: name, loraName: name, additionalSalt: name };
  const attributes = { ...NO_ATTRIBUTES, ...named, sessionId: name };
  const keys = Array.from({ length: 600 }, (_, index) => `${index}${'\u0001'.repeat(index * 5)}`);
  for (const key of keys) streamed.state.stored(at, Buffer.from(key), 'cpu', attributes);
  const sizeOf = (answer: object): number => Buffer.from(JSON.stringify(answer)).length;
  const seen: string[] = [];
  for (let cursor: unknown = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
    const page = streamed.ask({ snapshot: true, cursor });
    expect(sizeOf(page)).toBeLessThan(1 << 20);
    seen.push(...(page.objects as Required<ObjectEvent>[]).map(({ object_key }) => object_key));
    cursor = page.next_cursor;
  }
  expect(seen).toEqual(keys);
  for (let start: unknown = '1'; start !== null; ) {
    const range = streamed.ask({ start });
    expect(sizeOf(range)).toBeLessThan(1 << 20);
    start = range.next_event_id;
  }
});

/** Applies events and rows as docs/objects.md tells consumers to. */
class Consumer {
  readonly media = new Map<string, string>();

  take({ type, tenant_id, object_key, media = [] }: ObjectEvent): void {
    if (type === 'cleared') {
      for (const name of this.media.keys()) {
        if (name.startsWith(`${tenant_id}/`)) this.media.delete(name);
      }
    } else if (media.length === 0) this.media.delete(`${tenant_id}/${object_key}`);
    else this.media.set(`${tenant_id}/${object_key}`, media.join());
  }
}

const step = fc.tuple(
  fc.constantFrom('store', 'store', 'store', 'remove', 'remove', 'clear', 'page'),
  fc.integer({ min: 0, max: 1500 }),
  fc.constantFrom('cpu', 'disk'),
  fc.constantFrom(AT, T1),
);

test('a snapshot taken page by page while things change, and the events since, end in the state', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 400 }), (steps) => {
      const streamed = new Streamed({ maxEvents: 100_000, maxBytes: 1 << 24 });
      for (let index = 0; index < 1500; index++) streamed.store(`key-${index}`, 'cpu', AT);
      const consumer = new Consumer();
      let cursor: string | null = null;
      let base: number | null = null;
      const takePage = (): void => {
        if (base !== null && cursor === null) return;
        const page = streamed.ask({ snapshot: true, cursor });
        base ??= Number(page.last_event_id);
        for (const row of page.objects as ObjectEvent[]) consumer.take({ ...row, type: 'stored' });
        cursor = page.next_cursor as string | null;
      };
      takePage();
      for (const [kind, number, medium, at] of steps) {
        if (kind === 'store') streamed.store(`key-${number}`, medium, at);
        else if (kind === 'remove') streamed.remove(`key-${number}`, medium, at);
        else if (kind === 'page') takePage();
        else if (number < 100) streamed.state.cleared(at);
      }
      while (cursor !== null) takePage();
      const since = (base ?? 0) + 1;
      const range = streamed.stream.range(since, null, { maxEvents: 1e6, maxBytes: 1e9 });
      if (range.kind === 'events') {
        for (const event of range.events) consumer.take(decodeObjectEvent(event));
      }
      const whole = new Consumer();
      streamed.endTurn();
      for (const event of streamed.events) whole.take(event);
      expect(consumer.media).toEqual(whole.media);
      expect(whole.media.size).toBe(streamed.state.objectCount);
    }),
    { ...fixedSeed, numRuns: 40 },
  );
});
