/**
 * Recordings: an engine's messages with their arrival times, in one file.
 *
 * line 1   the header as JSON, ends with a line feed
 * rest     gzip members one after the other, each holding whole records
 * record   u32 BE ms since the start | u32 BE frame count | per frame: u32 BE length, bytes
 *
 * Torn     a recorder that is killed leaves a half member: it is named in `tornTail` and left out;
 *          the members before it have passed their checksums and are read.
 * Bounds   `RecordingLimits`: no length in a file is believed beyond them; the writer keeps them.
 */
import { constants, gzipSync, inflateRawSync } from 'node:zlib';
import { z } from 'zod';
import { errorLine, KvRelayError } from '../errors.ts';

export interface RecordingHeader {
  readonly format: 'kvrelay-recording';
  readonly version: 1;
  /** Name and version of what published the messages. */
  readonly engine: string;
  /** Tokens a KV block. */
  readonly block_size: number;
  /** ISO 8601. */
  readonly recorded_at: string;
  readonly description: string;
}

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

/** As large as the largest engine message a listener takes by default. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;
/** A member is closed at this size, so that the end of a recorder costs little. */
const MEMBER_BYTES = 256 * 1024;
const DEFAULT_LIMITS: RecordingLimits = {
  maxFrames: 64,
  maxRecordBytes: MAX_RECORD_BYTES,
  maxMemberBytes: MEMBER_BYTES + MAX_RECORD_BYTES,
};
const MAX_HEADER_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;
const U32_BYTES = 4;
const U32_MAX = 0xffff_ffff;

/** What is given is no recording, or a message cannot be part of one. */
export class RecordingError extends KvRelayError {
  readonly code = 'KVR_RECORDING';
}

const headerShape: z.ZodType<RecordingHeader> = z.object({
  format: z.literal('kvrelay-recording'),
  version: z.literal(1),
  engine: z.string().max(200),
  block_size: z.int().min(1).max(65_536),
  recorded_at: z.iso.datetime(),
  description: z.string().max(2000),
});

export class RecordingReader {
  readonly header: RecordingHeader;
  /** Why the end of the file is left out; known once `messages()` has come to it. */
  tornTail: string | null = null;
  readonly #file: Buffer;
  readonly #bodyOffset: number;
  readonly #limits: RecordingLimits;

  /** Throws RecordingError where `file` does not start as a recording. */
  constructor(file: Uint8Array, limits: Partial<RecordingLimits> = {}) {
    this.#file = Buffer.from(file.buffer, file.byteOffset, file.length);
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    const lineEnd = this.#file.subarray(0, MAX_HEADER_BYTES).indexOf(LINE_FEED);
    this.#bodyOffset = lineEnd + 1;
    this.header = parseHeader(this.#file.toString('utf8', 0, Math.max(lineEnd, 0)));
  }

  /** The messages in order of arrival; their frames are views into memory of their own. */
  *messages(): Generator<RecordedMessage, void> {
    this.tornTail = null;
    for (let offset = this.#bodyOffset; offset < this.#file.length; ) {
      const member = inflateMember(this.#file.subarray(offset), this.#limits.maxMemberBytes);
      if (typeof member === 'string') {
        this.tornTail = `${member} at byte ${offset} of ${this.#file.length}`;
        return;
      }
      const fault = yield* recordsIn(member.content, this.#limits);
      if (fault !== null) {
        this.tornTail = `${fault} in the member at byte ${offset}`;
        return;
      }
      offset += member.fileBytes;
    }
  }
}

export class RecordingWriter {
  readonly #write: (bytes: Uint8Array) => void;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  /** Writes the header at once; `write` takes the bytes of the file in order. */
  constructor(header: RecordingHeader, write: (bytes: Uint8Array) => void) {
    this.#write = write;
    write(Buffer.from(`${JSON.stringify(headerShape.parse(header))}\n`));
  }

  /** Throws RecordingError for a message that no reader would take. */
  add({ atMs, frames }: RecordedMessage): void {
    const recordBytes = frames.reduce(
      (sum, frame) => sum + U32_BYTES + frame.length,
      2 * U32_BYTES,
    );
    const { maxFrames, maxRecordBytes } = DEFAULT_LIMITS;
    if (frames.length > maxFrames || recordBytes > maxRecordBytes || !isU32(atMs)) {
      throw new RecordingError(
        `Cannot record ${frames.length} frames of ${recordBytes} bytes at ${atMs} ms`,
      );
    }
    this.#pending.push(u32(atMs), u32(frames.length));
    for (const frame of frames) this.#pending.push(u32(frame.length), Buffer.from(frame));
    this.#pendingBytes += recordBytes;
    if (this.#pendingBytes >= MEMBER_BYTES) this.flush();
  }

  /** Closes the member: all that was added so far can be read then. Call it at the end. */
  flush(): void {
    if (this.#pendingBytes === 0) return;
    this.#write(gzipSync(Buffer.concat(this.#pending), { level: constants.Z_BEST_COMPRESSION }));
    this.#pending = [];
    this.#pendingBytes = 0;
  }
}

function parseHeader(line: string): RecordingHeader {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    throw new RecordingError('Not a recording: its first line is no JSON header');
  }
  const header = headerShape.safeParse(json);
  if (header.success) return header.data;
  const path = header.error.issues[0]?.path.join('.') || 'header';
  throw new RecordingError(`Not a recording this version can read: wrong ${path}`);
}

// Member: 1f 8b, method 8, flags 0, 6 bytes of no use here | raw deflate | CRC-32, length (u32 LE).
const MEMBER_START = Buffer.from([0x1f, 0x8b, 8, 0]);
const MEMBER_HEAD_BYTES = 10;

/** The first member of `file`, or why there is none. */
function inflateMember(
  file: Buffer,
  maxOutputLength: number,
): { content: Buffer; fileBytes: number } | string {
  if (!file.subarray(0, MEMBER_START.length).equals(MEMBER_START)) return 'no gzip member';
  let content: Buffer;
  let checkOffset: number;
  try {
    const deflated = file.subarray(MEMBER_HEAD_BYTES);
    // gunzip would run on into the members behind, and keep nothing of them all where one is torn.
    const { buffer, engine } = inflateRaw(deflated, maxOutputLength);
    content = buffer;
    checkOffset = MEMBER_HEAD_BYTES + engine.bytesWritten;
  } catch (error) {
    return errorLine(error);
  }
  const fileBytes = checkOffset + 2 * U32_BYTES;
  if (fileBytes > file.length) return 'an unfinished gzip member';
  const isWhole =
    file.readUInt32LE(checkOffset) === crc32(content) &&
    file.readUInt32LE(checkOffset + U32_BYTES) === content.length;
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
function* recordsIn(
  member: Buffer,
  { maxFrames, maxRecordBytes }: RecordingLimits,
): Generator<RecordedMessage, string | null> {
  let offset = 0;
  while (offset < member.length) {
    const start = offset;
    if (member.length - offset < 2 * U32_BYTES) return 'half a record';
    const atMs = member.readUInt32BE(offset);
    const frameCount = member.readUInt32BE(offset + U32_BYTES);
    if (frameCount > maxFrames) return `a record of ${frameCount} frames`;
    offset += 2 * U32_BYTES;
    const frames: Uint8Array[] = [];
    for (let index = 0; index < frameCount; index++) {
      if (member.length - offset < U32_BYTES) return 'half a record';
      const frameStart = offset + U32_BYTES;
      offset = frameStart + member.readUInt32BE(offset);
      if (offset > member.length) return 'a frame that is longer than its member';
      frames.push(member.subarray(frameStart, offset));
    }
    if (offset - start > maxRecordBytes) return `a record of ${offset - start} bytes`;
    yield { atMs, frames };
  }
  return null;
}

function isU32(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= U32_MAX;
}

function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(U32_BYTES);
  bytes.writeUInt32BE(value);
  return bytes;
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
