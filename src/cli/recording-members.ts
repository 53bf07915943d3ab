/**
 * The body of a recording: gzip members one after the other, each holding whole records.
 *
 * member  1f 8b, method 8, flags 0, 6 bytes of no use here | raw deflate | CRC-32, length (u32 LE)
 * record  u32 BE ms since the start | u32 BE frame count | per frame: u32 BE length, bytes
 *
 * Reads from a window that moves over the file, so that a recording may be larger than memory.
 */
import { inflateRawSync } from 'node:zlib';
import { errorCode, errorLine } from '../errors.ts';

export interface RecordedMessage {
  /** Arrival, ms since the start of the recording: u32. */
  readonly atMs: number;
  readonly frames: readonly Uint8Array[];
}

export interface RecordingLimits {
  readonly maxFrames: number;
  readonly maxRecordBytes: number;
  /** Of one member, inflated. */
  readonly maxMemberBytes: number;
}

/** The bytes of a file, read by position; a file may still grow. */
export interface ByteSource {
  readonly byteLength: number;
  /** The bytes from `offset` on, fewer than `length` only at the end; valid until the next read. */
  read(offset: number, length: number): Buffer;
}

export const U32_BYTES = 4;
const U32_MAX = 0xffff_ffff;

const MEMBER_START = Buffer.from([0x1f, 0x8b, 8, 0]);
const MEMBER_HEAD_BYTES = 10;
const MEMBER_TAIL_BYTES = 2 * U32_BYTES;
/** Most members are smaller than the second, several of them than the first. */
const WINDOW_BYTES = 1 << 20;
const MIN_VIEW_BYTES = 1 << 19;

export interface Member {
  readonly content: Buffer;
  readonly fileBytes: number;
}

/** MemberReader: the members of a file, whatever its size, one at a time. */
export class MemberReader {
  readonly #source: ByteSource;
  readonly #maxMemberBytes: number;
  #start = 0;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(source: ByteSource, maxMemberBytes: number) {
    this.#source = source;
    this.#maxMemberBytes = maxMemberBytes;
  }

  /** The member that starts at `offset`, or why there is none. */
  read(offset: number): Member | string {
    for (let viewBytes = MIN_VIEW_BYTES; ; viewBytes *= 2) {
      const view = this.#view(offset, viewBytes);
      const member = inflateMember(view, this.#maxMemberBytes);
      // Only what is cut off by the view, and not by the file, is worth a longer look.
      if (member !== CUT_OFF) return member;
      if (offset + view.length >= this.#source.byteLength) return 'an unfinished gzip member';
    }
  }

  /** At least `length` bytes from `offset` on, where the file has them. */
  #view(offset: number, length: number): Buffer {
    const end = this.#start + this.#bytes.length;
    const wanted = Math.min(offset + length, this.#source.byteLength);
    if (offset < this.#start || end < wanted) {
      this.#bytes = this.#source.read(offset, Math.max(length, WINDOW_BYTES));
      this.#start = offset;
    }
    return this.#bytes.subarray(offset - this.#start);
  }
}

/** The bytes end before the member does. */
const CUT_OFF = Symbol('cut off');

function inflateMember(bytes: Buffer, maxOutputLength: number): Member | string | typeof CUT_OFF {
  if (bytes.length < MEMBER_HEAD_BYTES) {
    return MEMBER_START.indexOf(bytes.subarray(0, 4)) === 0 ? CUT_OFF : 'no gzip member';
  }
  if (!bytes.subarray(0, MEMBER_START.length).equals(MEMBER_START)) return 'no gzip member';
  let content: Buffer;
  let checkOffset: number;
  try {
    // gunzip would run on into the members behind, and keep nothing of them all where one is torn.
    const { buffer, engine } = inflateRaw(bytes.subarray(MEMBER_HEAD_BYTES), maxOutputLength);
    content = buffer;
    checkOffset = MEMBER_HEAD_BYTES + engine.bytesWritten;
  } catch (error) {
    return errorCode(error) === 'Z_BUF_ERROR' ? CUT_OFF : errorLine(error);
  }
  const fileBytes = checkOffset + MEMBER_TAIL_BYTES;
  if (fileBytes > bytes.length) return CUT_OFF;
  const isWhole =
    bytes.readUInt32LE(checkOffset) === crc32(content) &&
    bytes.readUInt32LE(checkOffset + U32_BYTES) === content.length;
  return isWhole ? { content, fileBytes } : 'a gzip member with a wrong checksum';
}

interface Inflated {
  readonly buffer: Buffer;
  /** Counts the bytes that were taken in. */
  readonly engine: { readonly bytesWritten: number };
}

/** Node's types do not know what `info` returns. */
function inflateRaw(deflated: Buffer, maxOutputLength: number): Inflated {
  return inflateRawSync(deflated, { info: true, maxOutputLength }) as unknown as Inflated;
}

/** Returns what is wrong with the record at which it stopped, or null at the end. */
export function* recordsIn(
  member: Buffer,
  limits: RecordingLimits,
): Generator<RecordedMessage, string | null> {
  let offset = 0;
  while (offset < member.length) {
    if (member.length - offset < U32_BYTES) return HALF_A_RECORD;
    const record = framesAt(member, offset + U32_BYTES, limits);
    if (typeof record === 'string') return record;
    if (record.end - offset > limits.maxRecordBytes) return tooLong(record.end - offset);
    yield { atMs: member.readUInt32BE(offset), frames: record.frames };
    offset = record.end;
  }
  return null;
}

const HALF_A_RECORD = 'half a record';
const LONG_FRAME = 'a frame that is longer than its member';

function tooLong(recordBytes: number): string {
  return `a record of ${recordBytes} bytes`;
}

interface Frames {
  readonly frames: readonly Uint8Array[];
  readonly end: number;
}

/** The frame count and the frames that stand at `offset`, or what is wrong with them. */
function framesAt(bytes: Buffer, offset: number, { maxFrames }: RecordingLimits): Frames | string {
  if (bytes.length - offset < U32_BYTES) return HALF_A_RECORD;
  const frameCount = bytes.readUInt32BE(offset);
  if (frameCount > maxFrames) return `a record of ${frameCount} frames`;
  let end = offset + U32_BYTES;
  const frames: Uint8Array[] = [];
  for (let index = 0; index < frameCount; index++) {
    if (bytes.length - end < U32_BYTES) return HALF_A_RECORD;
    const frameStart = end + U32_BYTES;
    end = frameStart + bytes.readUInt32BE(end);
    if (end > bytes.length) return LONG_FRAME;
    frames.push(bytes.subarray(frameStart, end));
  }
  return { frames, end };
}

/** The record without a time that stands at `offset`; null where its end has not come yet. */
export function traceRecordAt(
  bytes: Buffer,
  offset: number,
  limits: RecordingLimits,
): Frames | string | null {
  const record = framesAt(bytes, offset, limits);
  if (typeof record !== 'string') return record;
  if (record !== HALF_A_RECORD && record !== LONG_FRAME) return record;
  // Cut off: whether the rest is to come is for the reader to say, up to the largest record.
  const length = bytes.length - offset;
  return length > limits.maxRecordBytes ? tooLong(length) : null;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb8_8320 : crc >>> 1;
  return crc;
});

/** zlib's own is younger than the oldest Node kvrelay runs on. */
function crc32(bytes: Uint8Array): number {
  let crc = U32_MAX;
  for (const byte of bytes) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ byte) & 0xff] as number);
  return (crc ^ U32_MAX) >>> 0;
}
