import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader, type WireMessage } from '../../../src/connections/zmtp/frame-reader.ts';
import type { ReadSlab } from '../../../src/connections/zmtp/read-slab.ts';
import { framesOf, wireCommand, wireFrame, wireMessage } from '../../support/zmtp-frames.ts';

const MAX_BYTES = 1 << 20;

/** Gives a reader as much of these bytes as it has room for, and returns how many that are. */
function put(reader: FrameReader, bytes: Uint8Array): number {
  const room = reader.room();
  const taken = bytes.subarray(0, room.length);
  room.set(taken);
  reader.add(taken.length);
  return taken.length;
}

/** What a reader makes of bytes that come in these pieces, and how it stands at their end. */
function readPieces(pieces: readonly Uint8Array[], maxBytes = MAX_BYTES): unknown[] {
  const reader = new FrameReader(maxBytes);
  const messages: (WireMessage | string)[] = [];
  let end = 'partial';
  for (const piece of pieces) {
    for (let at = 0; at < piece.length && end === 'partial'; ) {
      at += put(reader, piece.subarray(at));
      end = readAll(reader, messages);
    }
  }
  // Only now, so that a message that is written over is seen.
  const found = messages.map((next) => (typeof next === 'string' ? next : framesOf(next)));
  return [...found, end];
}

function readAll(reader: FrameReader, messages: (WireMessage | string)[]): string {
  for (;;) {
    const progress = reader.next();
    if (progress === 'message' && reader.message !== null) {
      reader.message.slab.hold();
      messages.push(reader.message);
    } else if (progress === 'command') messages.push(reader.command.toString('latin1'));
    else return progress;
  }
}

function cutAt(bytes: Buffer, ...cuts: readonly number[]): Buffer[] {
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length));
}

const LONG_BODY = 'long'.repeat(100);
const STREAM = Buffer.concat([
  wireMessage(Buffer.from('topic'), Buffer.from('12345678'), Buffer.from(LONG_BODY)),
  wireCommand('PING', Buffer.from([0, 0, 7])),
  wireMessage(Buffer.from('one')),
  wireFrame(Buffer.from('a'), { isMore: true }),
  wireCommand('PONG'),
  wireFrame(Buffer.from('b'), { isMore: true, isLong: true }),
  wireFrame(Buffer.alloc(0)),
  wireMessage(...Array.from({ length: 5 }, (_, index) => Buffer.from(String(index)))),
]);
const FOUND = [
  ['topic', '12345678', LONG_BODY],
  '\x04PING\0\0\x07',
  ['one'],
  '\x04PONG',
  ['a', 'b', ''],
  ['0', '1', '2'],
  'partial',
];

test('FrameReader reads commands between messages and between frames, and frames of both lengths', () => {
  expect(readPieces([STREAM])).toEqual(FOUND);
});

test('FrameReader reads the same wherever the stream is cut', () => {
  for (let first = 1; first < STREAM.length; first++) {
    expect(readPieces(cutAt(STREAM, first))).toEqual(FOUND);
    for (let second = first + 1; second < STREAM.length; second += 7) {
      expect(readPieces(cutAt(STREAM, first, second))).toEqual(FOUND);
    }
  }
  expect(readPieces([...STREAM].map((byte) => Buffer.of(byte)))).toEqual(FOUND);
});

test('FrameReader says of no part of a message that it is one', () => {
  const message = wireMessage(Buffer.from('t'), Buffer.from('n'), Buffer.from('payload'));
  for (let length = 0; length < message.length; length++) {
    expect(readPieces([message.subarray(0, length)])).toEqual(['partial']);
  }
});

test('FrameReader keeps what is held while it reads on, whatever the sizes', () => {
  const sizes = fc.array(fc.oneof(fc.nat(300), fc.nat(70_000), fc.nat(900_000)), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 400_000 }), (lengths, pieceBytes) => {
      const bodies = lengths.map((length, index) => Buffer.alloc(length, 97 + index));
      const bytes = Buffer.concat(bodies.map((body) => wireMessage(Buffer.from('t'), body)));
      const cuts = Array.from(
        { length: Math.floor((bytes.length - 1) / pieceBytes) },
        (_, index) => (index + 1) * pieceBytes,
      );
      const pieces = cuts.length < 3000 ? cutAt(bytes, ...cuts) : [bytes];
      const texts = bodies.map((body) => ['t', body.toString('latin1')]);
      expect(readPieces(pieces)).toEqual([...texts, 'partial']);
    }),
    { numRuns: 40 },
  );
});

describe('FrameReader reads', () => {
  const message = wireMessage(Buffer.from('t'), Buffer.alloc(10_000, 120));

  /** The slabs of so many messages; of each, `use` is told. */
  function slabsOf(count: number, use: (slab: ReadSlab) => void): Set<ReadSlab> {
    const reader = new FrameReader(MAX_BYTES);
    const slabs = new Set<ReadSlab>();
    for (let index = 0; index < count; index++) {
      for (let at = 0; at < message.length; ) {
        at += put(reader, message.subarray(at));
      }
      expect(reader.next()).toBe('message');
      const { slab } = reader.message as WireMessage;
      slabs.add(slab);
      use(slab);
    }
    return slabs;
  }

  test('into the same memory again, where nobody holds it', () => {
    expect(slabsOf(500, () => undefined).size).toBe(2);
  });

  test('past what is held, and into it once it is let go', () => {
    const held: ReadSlab[] = [];
    const slabs = slabsOf(500, (slab) => {
      slab.hold();
      if (held.push(slab) > 100) held.shift()?.letGo();
    });
    expect(slabs.size).toBeGreaterThan(4);
    expect(slabs.size).toBeLessThan(9);
  });

  test('into memory of its own beyond a few slabs', () => {
    expect(slabsOf(1000, (slab) => slab.hold()).size).toBeGreaterThan(35);
  });
});

test('FrameReader counts all frames of a message, and keeps three', () => {
  const reader = new FrameReader(MAX_BYTES);
  const bytes = wireMessage(...Array.from({ length: 20_000 }, () => Buffer.alloc(0)));
  for (let at = 0; at < bytes.length; ) {
    expect(reader.next()).toBe('partial');
    at += put(reader, bytes.subarray(at));
  }
  expect(reader.next()).toBe('message');
  expect(reader.message?.frameCount).toBe(20_000);
});

function lengthHead(flags: number, length: bigint): Buffer {
  const head = Buffer.alloc(9);
  head[0] = flags;
  head.writeBigUInt64BE(length, 1);
  return head;
}

describe('FrameReader ends at', () => {
  const whole = wireMessage(Buffer.from('whole'));
  const tooManyBytes = Array.from({ length: 300 }, () => Buffer.alloc(255));
  test.each([
    ['reserved flags', Buffer.of(8, 0), 'breach'],
    ['all flags', Buffer.of(0xff, 0xff), 'breach'],
    ['a command that has more', Buffer.of(5, 0), 'breach'],
    ['a long command', lengthHead(6, 8193n), 'breach'],
    ['a frame above the bound', lengthHead(2, 1025n), 'oversize'],
    [
      'a frame above it behind another',
      Buffer.concat([Buffer.of(1, 0), lengthHead(2, 1025n)]),
      'oversize',
    ],
    ['a length of 2^32 and more', lengthHead(2, 1n << 32n), 'oversize'],
    ['a length with the highest bit', lengthHead(2, 1n << 63n), 'oversize'],
    ['frames that are too much together', wireMessage(...tooManyBytes), 'oversize'],
  ])('%s', (_, bytes, fault) => {
    expect(readPieces([whole, bytes], 1024)).toEqual([['whole'], fault]);
  });

  test('nothing that is just as large as it may be', () => {
    const body = Buffer.alloc(1024, 120);
    expect(readPieces([wireMessage(Buffer.from('topic'), body)], 1024)).toEqual([
      ['topic', body.toString()],
      'partial',
    ]);
  });
});

test('FrameReader takes memory as bytes arrive, not as they are announced', () => {
  const reader = new FrameReader(2 ** 31 - 1);
  const add = (bytes: Buffer): void => {
    reader.room().set(bytes);
    reader.add(bytes.length);
    expect(reader.next()).toBe('partial');
  };
  add(lengthHead(2, 2n ** 31n - 1n));
  let received = 9;
  for (let read = 0; read < 2000; read++) {
    add(Buffer.alloc(4096));
    received += 4096;
    expect(reader.room().buffer.byteLength).toBeLessThan(2 * received + (2 << 20));
  }
});

test('FrameReader takes no more in one read where a message is large', () => {
  const reader = new FrameReader(1 << 28);
  reader.room().set(lengthHead(2, 1n << 28n));
  reader.add(9);
  for (let received = 9; received < 1 << 24; ) {
    expect(reader.next()).toBe('partial');
    const { length } = reader.room();
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThanOrEqual((1 << 18) + (1 << 12));
    reader.add(length);
    received += length;
  }
});
