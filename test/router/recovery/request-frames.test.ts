import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  MAX_HEADERS_BYTES,
  MAX_PATH_BYTES,
  MAX_PAYLOAD_BYTES,
  type RequestFrame,
  RequestFrames,
} from '../../../src/router/recovery/request-frames.ts';
import { requestFrame } from '../../support/router-requests.ts';

const PATH = '4f7921ac106653e6/demo/backend/worker_kv_query_source_abc123';

function framesOf(...chunks: Buffer[]): { frames: RequestFrame[]; isWellFormed: boolean } {
  const reader = new RequestFrames();
  const frames: RequestFrame[] = [];
  const isWellFormed = chunks.every((chunk) => reader.push(chunk, frames));
  return { frames, isWellFormed };
}

test('the lengths stand as a stock router was seen to write them', () => {
  const frame = requestFrame(PATH, Buffer.alloc(472));
  expect(frame.subarray(0, 2).toString('hex')).toBe('003b');
  expect(frame.subarray(61, 63).toString('hex')).toBe('00b3');
  expect(frame.subarray(63 + 0xb3, 67 + 0xb3).toString('hex')).toBe('000001d8');
});

test('frames are found wherever the connection cuts them', () => {
  const payloads = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(300, 7)];
  const bytes = Buffer.concat(payloads.map((payload) => requestFrame(PATH, payload)));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 }), (cuts) => {
      const ends = [...cuts.sort((a, b) => a - b), bytes.length];
      const chunks = ends.map((end, index) =>
        bytes.subarray(index === 0 ? 0 : ends[index - 1], end),
      );
      const { frames, isWellFormed } = framesOf(...chunks);
      expect(isWellFormed).toBe(true);
      expect(frames.map(({ path }) => path)).toEqual([PATH, PATH, PATH]);
      expect(frames.map(({ payload }) => payload.toString('hex'))).toEqual(
        payloads.map((payload) => payload.toString('hex')),
      );
    }),
  );
});

test('single bytes are enough, and a frame that has begun is told', () => {
  const reader = new RequestFrames();
  const frames: RequestFrame[] = [];
  const bytes = requestFrame('a', Buffer.from('b'));
  expect(reader.isInFrame).toBe(false);
  for (const [index, byte] of bytes.entries()) {
    reader.push(Buffer.from([byte]), frames);
    expect(reader.isInFrame).toBe(index < bytes.length - 1);
  }
  expect(frames).toHaveLength(1);
});

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const u32 = (value: number): Buffer => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)]);

test.each([
  ['path', u16(MAX_PATH_BYTES + 1)],
  ['headers', Buffer.concat([u16(1), Buffer.from('p'), u16(MAX_HEADERS_BYTES + 1)])],
  ['payload', Buffer.concat([u16(0), u16(0), u32(MAX_PAYLOAD_BYTES + 1)])],
  ['payload of 4 GiB', Buffer.concat([u16(0), u16(0), u32(0xffff_ffff)])],
])('a %s over its bound is a fault as soon as it is announced', (_, announced) => {
  const before = requestFrame(PATH, Buffer.from('good'));
  const { frames, isWellFormed } = framesOf(before, announced);
  expect(isWellFormed).toBe(false);
  expect(frames).toHaveLength(1);
  expect(framesOf(Buffer.concat([before, announced]))).toMatchObject({ isWellFormed: false });
});

test('what reaches the bounds exactly is taken', () => {
  const path = 'p'.repeat(MAX_PATH_BYTES);
  const headers = Buffer.alloc(MAX_HEADERS_BYTES, 0x20);
  const frame = Buffer.concat([
    u16(MAX_PATH_BYTES),
    Buffer.from(path),
    u16(MAX_HEADERS_BYTES),
    headers,
    u32(MAX_PAYLOAD_BYTES),
    Buffer.alloc(MAX_PAYLOAD_BYTES, 1),
  ]);
  const { frames } = framesOf(frame);
  expect(frames).toHaveLength(1);
  expect(frames[0]?.path).toBe(path);
  expect(frames[0]?.payload).toHaveLength(MAX_PAYLOAD_BYTES);
});
