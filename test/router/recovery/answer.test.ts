import fc from 'fast-check';
import { pack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { twoPart } from '../../../src/protocol/two-part.ts';
import { type Answer, answerTo, encodeAnswer } from '../../../src/router/recovery/answer.ts';
import { JsonEvents } from '../../../src/router/recovery/json-events.ts';
import { MsgpackError, MsgpackToJson } from '../../../src/router/recovery/msgpack-to-json.ts';
import type { Query } from '../../../src/router/recovery/query.ts';
import {
  answerHead,
  closing,
  FAREWELLS,
  handshake,
  PROLOGUE,
} from '../../../src/router/recovery/response-messages.ts';

const NO_EVENTS = { count: 0, chunks: [] };

/** Body of a stock worker's answer for an empty index, captured. */
const EMPTY_DUMP =
  '82a46461746181a85472656544756d7083a66576656e747390ad6c6173745f6576656e745f696400' +
  'ab72657365745f73636f7065a3616c6cae636f6d706c6574655f66696e616cc2';

function bytesOf(answer: Answer, codec: 'msgpack' | 'json', chunks: Uint8Array[] = []): Buffer {
  return Buffer.concat(encodeAnswer(answer, codec, chunks));
}

test('an empty dump is byte for byte what a stock worker was seen to send', () => {
  const answer = { kind: 'tree_dump', events: NO_EVENTS, lastEventId: 0 } as const;
  expect(bytesOf(answer, 'msgpack').toString('hex')).toBe(EMPTY_DUMP);
  expect(bytesOf(answer, 'json').toString()).toBe(
    '{"data":{"TreeDump":{"events":[],"last_event_id":0,"reset_scope":"all"}},' +
      '"complete_final":false}',
  );
});

test('the messages around it are byte for byte those of a stock worker', () => {
  const subject = '31448181-c5ac-4b6f-b6fa-1c0ddcd31a7f';
  const headerOnly = (text: string): string =>
    twoPart(Buffer.from(text), Buffer.alloc(0)).toString('hex');
  expect(handshake(subject).toString('hex')).toBe(
    headerOnly(`{"subject":"${subject}","stream_type":"response"}`),
  );
  expect(PROLOGUE.toString('hex')).toBe(headerOnly('{"error":null}'));
  expect(PROLOGUE.subarray(0, 24).toString('hex')).toBe(`${'0'.repeat(14)}0e${'0'.repeat(32)}`);
  expect(answerHead(5).toString('hex')).toBe(`${'0'.repeat(30)}05${'0'.repeat(16)}`);
  const end = Buffer.from('81ae636f6d706c6574655f66696e616cc3', 'hex');
  const sentinel = headerOnly('"sentinel"');
  expect(closing('msgpack').toString('hex')).toBe(
    twoPart(Buffer.alloc(0), end).toString('hex') + sentinel,
  );
  expect(closing('json').toString('hex')).toBe(
    twoPart(Buffer.alloc(0), Buffer.from('{"complete_final":true}')).toString('hex') + sentinel,
  );
  expect(FAREWELLS.map((message) => message.toString('latin1', 24))).toEqual(['"kill"', '"stop"']);
});

const WIDE = 2n ** 64n - 1n;

describe.each<[string, Answer, string]>([
  [
    'events',
    { kind: 'events', events: NO_EVENTS, lastEventId: 2 ** 32 },
    '{"Events":{"events":[],"last_event_id":4294967296}}',
  ],
  [
    'too_new',
    { kind: 'too_new', requestedStart: WIDE, requestedEnd: 200n, newestAvailable: 65535 },
    `{"TooNew":{"requested_start":${WIDE},"requested_end":200,"newest_available":65535}}`,
  ],
  [
    'invalid_range',
    { kind: 'invalid_range', startId: 5n, endId: 4n },
    '{"InvalidRange":{"start_id":5,"end_id":4}}',
  ],
  [
    'tree_dump_failed',
    { kind: 'tree_dump_failed', lastEventId: 70_000, message: 'ü"' },
    '{"TreeDumpFailed":{"last_event_id":70000,"message":"ü\\""}}',
  ],
  ['error', { kind: 'error', message: 'x'.repeat(300) }, `{"Error":"${'x'.repeat(300)}"}`],
])('the answer %s', (_, answer, json) => {
  const whole = `{"data":${json},"complete_final":false}`;
  test('is written in JSON', () => {
    expect(bytesOf(answer, 'json').toString()).toBe(whole);
  });
  test('is the same in MessagePack, without a float', () => {
    expect(new MsgpackToJson(bytesOf(answer, 'msgpack')).next()).toBe(whole);
  });
});

test.each([
  [15, '9f'],
  [16, 'dc0010'],
  [65_535, 'dcffff'],
  [65_536, 'dd00010000'],
])('a list of %i events begins with %s, and their bytes follow as they are', (count, header) => {
  const chunks = [Buffer.alloc(count - 1, 1), Buffer.alloc(1, 2)];
  const bytes = bytesOf(
    { kind: 'events', events: { count, chunks }, lastEventId: 1 },
    'msgpack',
    chunks,
  );
  const events = Buffer.concat([Buffer.from(header, 'hex'), ...chunks]).toString('hex');
  expect(bytes.toString('hex')).toContain(`a6${Buffer.from('events').toString('hex')}${events}ad`);
});

test('JSON events of several chunks are joined by commas, whichever were turned before', async () => {
  const [first, second] = [Buffer.from('81a1610181a16102', 'hex'), Buffer.from('81a16103', 'hex')];
  const events = new JsonEvents();
  await events.turnAhead([first]);
  const chunks = await events.turn([first, Buffer.alloc(0), second]);
  const answer = { kind: 'events', events: { count: 3, chunks: [] }, lastEventId: 3 } as const;
  expect(JSON.parse(bytesOf(answer, 'json', chunks).toString())).toEqual({
    data: { Events: { events: [{ a: 1 }, { a: 2 }, { a: 3 }], last_event_id: 3 } },
    complete_final: false,
  });
});

describe('ids that a router asked for come back with all their digits', () => {
  const query = (startEventId: bigint | null, endEventId: bigint | null): Query => ({
    workerId: 1n,
    dpRank: 0,
    startEventId,
    endEventId,
    supportsTreeDumpFailed: true,
    kind: 'recovery',
  });
  test('too_new', () => {
    const answer = {
      kind: 'too_new',
      requestedStart: 9,
      requestedEnd: 7,
      newestAvailable: 7,
    } as const;
    expect(answerTo(query(WIDE, null), answer)).toMatchObject({
      requestedStart: WIDE,
      requestedEnd: 7n,
    });
    expect(answerTo(query(WIDE - 1n, WIDE), answer)).toMatchObject({
      requestedStart: WIDE - 1n,
      requestedEnd: WIDE,
    });
  });
  test('invalid_range', () => {
    const answer = { kind: 'invalid_range', startId: 9, endId: 7 } as const;
    expect(answerTo(query(WIDE, WIDE - 1n), answer)).toEqual({
      kind: 'invalid_range',
      startId: WIDE,
      endId: WIDE - 1n,
    });
  });
});

describe('MessagePack to JSON', () => {
  const whole = (bytes: Uint8Array): string => new MsgpackToJson(bytes).next();

  test.each([
    ['cf7fffffffffffffff', '9223372036854775807'],
    ['cfffffffffffffffff', '18446744073709551615'],
    ['d38000000000000000', '-9223372036854775808'],
    ['d0ff', '-1'],
    ['e0', '-32'],
    ['ce00010000', '65536'],
    ['93c0c2c3', '[null,false,true]'],
    ['80', '{}'],
    ['90', '[]'],
    ['0102', '1,2'],
    ['81a16190c0', '{"a":[]},null'],
    ['81a161818090', undefined],
    ['c403010203', undefined],
    ['ca00000000', undefined],
    ['93c0', undefined],
    ['', ''],
  ])('%s becomes %s', (hex, json) => {
    const bytes = Buffer.from(hex, 'hex');
    if (json === undefined) expect(() => whole(bytes)).toThrow(MsgpackError);
    else expect(whole(bytes)).toBe(json);
  });

  test('agrees with JSON.stringify, in one go and in slices of any size', () => {
    const value = fc.jsonValue({ noUnicodeString: false } as never).filter((v) => !hasFloat(v));
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 20 }), (json, sliceBytes) => {
        const bytes = pack(json);
        expect(JSON.parse(whole(bytes))).toEqual(JSON.parse(JSON.stringify(json)));
        const slices = new MsgpackToJson(bytes);
        let text = '';
        while (!slices.isAtEnd) text += slices.next(sliceBytes);
        expect(text).toBe(whole(bytes));
      }),
    );
  });
});

function hasFloat(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isInteger(value) || Math.abs(value) >= 2 ** 32;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some(hasFloat);
}
