/**
 * Recordings: an engine's messages with their arrival times, in one file.
 *
 * line 1   the header as JSON, ends with a line feed
 * rest     gzip members one after the other, each holding whole records; see recording-members.ts
 *
 * Streams  reader and writer hold one member at a time: a file may be larger than memory.
 * Torn     a recorder that is killed leaves a half member: it is named in `tornTail` and left out;
 *          the members before it have passed their checksums and are read.
 * Bounds   `RecordingLimits`: no length in a file is believed beyond them; the writer keeps them.
 */
import { constants, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { KvRelayError } from '../errors.ts';
import {
  type ByteSource,
  MemberReader,
  type RecordedMessage,
  type RecordingLimits,
  recordsIn,
  U32_BYTES,
} from './recording-members.ts';

export type { RecordedMessage };

export interface RecordingHeader {
  readonly format: 'kvrelay-recording';
  readonly version: 1;
  /** Name and version of what published the messages. */
  readonly engine: string;
  /** Tokens a KV block; null where the recorder was not told. */
  readonly block_size: number | null;
  /** ISO 8601. */
  readonly recorded_at: string;
  readonly description: string;
  /** Token ids are zeros, names and extra keys are left out. */
  readonly redacted?: boolean | undefined;
}

/** As large as the largest engine message a listener takes by default. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;
/** A member is closed at this size, so that the end of a recorder costs little. */
const MEMBER_BYTES = 256 * 1024;
export const DEFAULT_LIMITS: RecordingLimits = {
  maxFrames: 64,
  maxRecordBytes: MAX_RECORD_BYTES,
  maxMemberBytes: MEMBER_BYTES + MAX_RECORD_BYTES,
};
const MAX_HEADER_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;
const U32_MAX = 0xffff_ffff;

/** What is given is no recording, or a message cannot be part of one. */
export class RecordingError extends KvRelayError {
  readonly code = 'KVR_RECORDING';
}

const headerShape: z.ZodType<RecordingHeader> = z.object({
  format: z.literal('kvrelay-recording'),
  version: z.literal(1),
  engine: z.string().max(200),
  block_size: z.int().min(1).max(65_536).nullable(),
  recorded_at: z.iso.datetime(),
  description: z.string().max(2000),
  redacted: z.boolean().optional(),
});

export class RecordingReader {
  readonly header: RecordingHeader;
  /** Why the end of the file is left out; known once `messages()` has come to it. */
  tornTail: string | null = null;
  /** Where the first member stands that `messages()` has not read to its end. */
  nextOffset: number;
  readonly #source: ByteSource;
  readonly #bodyOffset: number;
  readonly #limits: RecordingLimits;

  /** Throws RecordingError where `source` does not start as a recording. */
  constructor(source: Uint8Array | ByteSource, limits: Partial<RecordingLimits> = {}) {
    this.#source = source instanceof Uint8Array ? memorySource(source) : source;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    const start = this.#source.read(0, MAX_HEADER_BYTES);
    const lineEnd = start.indexOf(LINE_FEED);
    this.#bodyOffset = lineEnd + 1;
    this.nextOffset = this.#bodyOffset;
    this.header = parseHeader(start.toString('utf8', 0, Math.max(lineEnd, 0)));
  }

  /** The messages in order of arrival, from the member at `offset` on; frames are views. */
  *messages(offset: number = this.#bodyOffset): Generator<RecordedMessage, void> {
    this.tornTail = null;
    this.nextOffset = offset;
    const members = new MemberReader(this.#source, this.#limits.maxMemberBytes);
    while (this.nextOffset < this.#source.byteLength) {
      const member = members.read(this.nextOffset);
      if (typeof member === 'string') {
        this.tornTail = `${member} at byte ${this.nextOffset} of ${this.#source.byteLength}`;
        return;
      }
      const fault = yield* recordsIn(member.content, this.#limits);
      if (fault !== null) {
        this.tornTail = `${fault} in the member at byte ${this.nextOffset}`;
        return;
      }
      this.nextOffset += member.fileBytes;
    }
  }
}

function memorySource({ buffer, byteOffset, byteLength }: Uint8Array): ByteSource {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return { byteLength, read: (offset, length) => bytes.subarray(offset, offset + length) };
}

export class RecordingWriter {
  readonly #write: (bytes: Uint8Array) => void;
  readonly #level: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  /** Writes the header at once; `write` takes the bytes of the file in order. */
  constructor(
    header: RecordingHeader,
    write: (bytes: Uint8Array) => void,
    level: number = constants.Z_BEST_COMPRESSION,
  ) {
    this.#write = write;
    this.#level = level;
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
    this.#write(gzipSync(Buffer.concat(this.#pending), { level: this.#level }));
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

function isU32(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= U32_MAX;
}

function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(U32_BYTES);
  bytes.writeUInt32BE(value);
  return bytes;
}
