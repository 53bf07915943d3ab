import { readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type RecordedMessage,
  RecordingError,
  type RecordingHeader,
  RecordingReader,
  RecordingWriter,
} from '../../src/cli/recording.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { PLAIN_SETTINGS, pipelineConfigOf } from '../support/scenarios.ts';

const header: RecordingHeader = {
  format: 'kvrelay-recording',
  version: 1,
  engine: 'vllm 0.33.0',
  block_size: 16,
  recorded_at: '2026-01-02T03:04:05.678Z',
  description: 'a test',
};
const HEADER_LINE = Buffer.from(`${JSON.stringify(header)}\n`);

/** Each inner list becomes a member of its own. */
function recorded(...members: readonly (readonly RecordedMessage[])[]): Buffer {
  const parts: Uint8Array[] = [];
  const writer = new RecordingWriter(header, (bytes) => void parts.push(bytes));
  for (const messages of members) {
    for (const message of messages) writer.add(message);
    writer.flush();
  }
  return Buffer.concat(parts);
}

function message(atMs: number, ...frames: readonly string[]): RecordedMessage {
  return { atMs, frames: frames.map((frame) => Buffer.from(frame)) };
}

/** A recording whose one member holds these bytes. */
function holding(...bytes: readonly (number | string)[]): Buffer {
  const content = bytes.map((part) => {
    if (typeof part === 'string') return Buffer.from(part);
    const number = Buffer.alloc(4);
    number.writeUInt32BE(part);
    return number;
  });
  return Buffer.concat([HEADER_LINE, gzipSync(Buffer.concat(content))]);
}

function read(
  file: Uint8Array,
  limits = {},
): { messages: RecordedMessage[]; tornTail: string | null } {
  const reader = new RecordingReader(file, limits);
  const messages = [...reader.messages()].map(({ atMs, frames }) => ({
    atMs,
    frames: frames.map((frame) => Buffer.from(frame)),
  }));
  return { messages, tornTail: reader.tornTail };
}

const early = [message(0, '', 'n0', 'payload'), message(7, 'topic', 'n1', '')];
const late = [message(7), message(4_294_967_295, 'x'.repeat(1000))];

test('what was written is read back, header first', () => {
  const file = recorded(early, late);
  expect(new RecordingReader(file).header).toEqual(header);
  expect(read(file)).toEqual({ messages: [...early, ...late], tornTail: null });
});

test('any messages, however they were flushed, are read back in order', () => {
  const frame = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const anyMessage = fc.record({
    atMs: fc.nat(0xffff_ffff),
    frames: fc.array(frame, { maxLength: 5 }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(anyMessage)), (members) => {
      expect(read(recorded(...members))).toEqual({ messages: members.flat(), tornTail: null });
    }),
  );
});

test('a long recording is cut into members by itself, and can be read twice', () => {
  const frames = [Buffer.alloc(100_000, 7)];
  const messages = Array.from({ length: 10 }, (_, atMs) => ({ atMs, frames }));
  const parts: Uint8Array[] = [];
  const writer = new RecordingWriter(header, (bytes) => void parts.push(bytes));
  for (const each of messages) writer.add(each);
  expect(parts.length).toBe(1 + 3);
  writer.flush();
  const reader = new RecordingReader(Buffer.concat(parts));
  expect([...reader.messages()].length).toBe(10);
  expect([...reader.messages()].length).toBe(10);
});

test('a recording cut off anywhere plays its whole members and says that its tail is torn', () => {
  const first = recorded(early);
  const file = recorded(early, late);
  expect(read(first)).toEqual({ messages: early, tornTail: null });
  for (let length = HEADER_LINE.length + 1; length < file.length; length++) {
    if (length === first.length) continue;
    const { messages, tornTail } = read(file.subarray(0, length));
    expect(messages).toEqual(length < first.length ? [] : early);
    expect(tornTail).toMatch(/member|end of file/);
  }
});

test('a damaged member is not played, nor what comes behind it', () => {
  const first = recorded(early);
  const file = recorded(early, late);
  for (let offset = first.length; offset < file.length; offset++) {
    const damaged = Buffer.from(file);
    damaged[offset] = (damaged[offset] as number) ^ 0x10;
    const { messages, tornTail } = read(damaged);
    // Some bits say nothing: the time in a member's head, the padding of its last byte.
    expect(messages).toEqual(tornTail === null ? [...early, ...late] : early);
  }
});

test('bytes behind the last member are reported', () => {
  const { messages, tornTail } = read(Buffer.concat([recorded(early), Buffer.from('junk')]));
  expect(messages).toEqual(early);
  expect(tornTail).toMatch(/^no gzip member at byte \d+ of \d+$/);
});

describe('no length is believed', () => {
  test.each([
    ['a frame longer than its member', holding(0, 1, 0xffff_ffff, 'x'), /longer than its member/],
    ['a record without end', holding(0, 0xffff_ffff, 0), /record of 4294967295 frames/],
    ['half a record', holding(0), /half a record/],
    ['half a frame length', holding(0, 2, 1, 'x', '\0\0'), /half a record/],
  ])('%s', (_, file, report) => {
    const { messages, tornTail } = read(file);
    expect(messages).toEqual([]);
    expect(tornTail).toMatch(report);
  });

  test('a member that inflates beyond the limit', () => {
    const file = Buffer.concat([HEADER_LINE, gzipSync(Buffer.alloc(1_000_000))]);
    const { messages, tornTail } = read(file, { maxMemberBytes: 10_000 });
    expect(messages).toEqual([]);
    expect(tornTail).toMatch(/ERR_BUFFER_TOO_LARGE/);
  });

  test('a record beyond the limit', () => {
    const file = recorded([message(1, 'x'.repeat(100)), message(2, 'x'.repeat(200))]);
    const { messages, tornTail } = read(file, { maxRecordBytes: 150 });
    expect(messages.map(({ atMs }) => atMs)).toEqual([1]);
    expect(tornTail).toMatch(/a record of 212 bytes/);
  });

  test('the writer adds nothing that a reader would refuse', () => {
    const writer = new RecordingWriter(header, () => undefined);
    const frame = Buffer.alloc(0);
    const tooMany = { atMs: 0, frames: Array.from({ length: 65 }, () => frame) };
    const half = Buffer.alloc(128 * 1024 * 1024);
    expect(() => writer.add(tooMany)).toThrow(RecordingError);
    expect(() => writer.add({ atMs: 0, frames: [half, half] })).toThrow(RecordingError);
    expect(() => writer.add({ atMs: -1, frames: [] })).toThrow(RecordingError);
    expect(() => writer.add({ atMs: 0x1_0000_0000, frames: [] })).toThrow(RecordingError);
  });
});

describe('the header', () => {
  const line = (change: object): Buffer =>
    Buffer.from(`${JSON.stringify({ ...header, ...change })}\n`);

  test('may hold more than this version knows', () => {
    expect(new RecordingReader(line({ compressed_by: 'x' })).header).toEqual(header);
  });

  test.each([
    ['an empty file', Buffer.alloc(0), /first line/],
    ['no line feed', HEADER_LINE.subarray(0, -1), /first line/],
    ['no line feed within 64 KiB', Buffer.alloc(100_000, ' '), /first line/],
    ['no JSON', Buffer.from('{"format":\n'), /first line/],
    ['no object', Buffer.from('7\n'), /wrong header/],
    ['another format', line({ format: 'x' }), /wrong format/],
    ['another version', line({ version: 2 }), /wrong version/],
    ['no block size', line({ block_size: 0 }), /wrong block_size/],
    ['no time', line({ recorded_at: 'yesterday' }), /wrong recorded_at/],
  ])('is refused: %s', (_, file, report) => {
    expect(() => new RecordingReader(file)).toThrow(RecordingError);
    expect(() => new RecordingReader(file)).toThrow(report);
  });
});

describe('the recording of the demo', () => {
  const path = new URL('../../assets/demo.kvrec', import.meta.url);

  test('is small, whole, and as long as a demo should be', () => {
    expect(statSync(path).size).toBeLessThan(1_500_000);
    const { messages, tornTail } = read(readFileSync(path));
    expect(tornTail).toBeNull();
    expect(messages.length).toBeGreaterThan(4000);
    expect(messages.every(({ frames }) => frames.length === 3)).toBe(true);
    expect(messages.at(-1)?.atMs).toBeGreaterThan(60_000);
    // [time, events, rank 0]: the demo puts the rank it is asked for in the place of the last byte.
    for (const { frames } of messages)
      expect([frames[2]?.[0], frames[2]?.at(-1)]).toEqual([0x93, 0]);
  });

  test('shows what a relay does: removals that pass, removals held back, merged events', () => {
    const reader = new RecordingReader(readFileSync(path));
    const relay = new InProcessRelay(
      pipelineConfigOf({ ...PLAIN_SETTINGS, kv_block_size: reader.header.block_size ?? 0 }),
    );
    for (const { frames } of reader.messages()) relay.push(frames);
    const { metrics } = relay;
    expect(metrics.publishedBlocks.removed).toBeGreaterThan(1000);
    expect(metrics.suppressedRemoves).toBeGreaterThan(10);
    expect(metrics.coalescedEvents).toBeGreaterThan(1000);
    expect(metrics.publishedEvents.cleared).toBeGreaterThan(10);
    expect(Object.values(metrics.malformed)).toEqual([0, 0, 0, 0, 0]);
    expect(metrics.accepted).toEqual(metrics.received);
  });
});
