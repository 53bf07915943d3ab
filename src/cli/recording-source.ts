/**
 * What can be played or inspected from a file: recordings, and traces, which are older and simpler.
 *
 * trace   one gzip stream over records without a time: u32 BE frame count | per frame: u32 BE
 *         length, bytes. The times are those that the batches themselves carry.
 * Reads   piece by piece, for files that are larger than memory; each pass opens the file anew.
 */
import { closeSync, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { ConfigError, errorLine, messageOf } from '../errors.ts';
import {
  DEFAULT_LIMITS,
  RecordingError,
  type RecordingHeader,
  RecordingReader,
} from './recording.ts';
import { type ByteSource, type RecordedMessage, traceRecordAt } from './recording-members.ts';

export interface PassOptions {
  /** Told why the end of the file is left out, if it is. */
  readonly onTorn: (reason: string) => void;
  /** Given: the pass waits for what a recorder still adds, until this says to end. */
  readonly follow?: AbortSignal;
}

export interface MessageFile {
  readonly path: string;
  /** Null for a trace. */
  readonly header: RecordingHeader | null;
  /** The messages from the first on, for each call. */
  messages(options: PassOptions): AsyncGenerator<RecordedMessage, void>;
}

const GZIP_START = Buffer.from([0x1f, 0x8b]);
const INFLATED_CHUNK_BYTES = 1 << 20;
const FOLLOW_MS = 200;

/** Throws ConfigError where there is no such file, RecordingError where it is of another kind. */
export function openMessageFile(path: string): MessageFile {
  const file = openFile(path);
  try {
    const isTrace = file.read(0, GZIP_START.length).equals(GZIP_START);
    if (isTrace) return { path, header: null, messages: (options) => traceMessages(path, options) };
    const { header } = new RecordingReader(file);
    return { path, header, messages: (options) => recordingMessages(path, options) };
  } catch (cause) {
    throw new RecordingError(`Cannot read ${path}`, {
      cause,
      remedy: 'Give a file that kvrelay record has written',
    });
  } finally {
    file.close();
  }
}

type OpenFile = ByteSource & { close(): void };

function openFile(path: string): OpenFile {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
    if (fstatSync(descriptor).isDirectory()) throw new Error('a directory');
  } catch (error) {
    throw new ConfigError({
      setting: 'FILE',
      value: path,
      problem: `cannot be read (${messageOf(error)})`,
      allowed: 'a recording or a trace',
      remedy: 'Correct the path',
    });
  }
  let bytes = Buffer.alloc(0);
  return {
    get byteLength(): number {
      return fstatSync(descriptor).size;
    },
    read(offset, length): Buffer {
      if (bytes.length < length) bytes = Buffer.allocUnsafe(length);
      let end = 0;
      for (let count = -1; count !== 0 && end < length; end += count) {
        count = readSync(descriptor, bytes, end, length - end, offset + end);
      }
      return bytes.subarray(0, end);
    },
    close: () => closeSync(descriptor),
  };
}

async function* recordingMessages(
  path: string,
  { onTorn, follow }: PassOptions,
): AsyncGenerator<RecordedMessage, void> {
  const file = openFile(path);
  try {
    const reader = new RecordingReader(file);
    yield* inTurns(reader, reader.nextOffset);
    while (follow !== undefined && !follow.aborted) {
      // Half a member is the recorder's last one, which it has not finished.
      await sleep(FOLLOW_MS, undefined, { signal: follow }).catch(() => undefined);
      yield* inTurns(reader, reader.nextOffset);
    }
    if (reader.tornTail !== null) onTorn(reader.tornTail);
  } finally {
    file.close();
  }
}

/**
 * The messages from `offset` on, with a turn of the event loop between members: without one no
 * signal and no timer is heard, and what a member took is given back late.
 */
async function* inTurns(
  reader: RecordingReader,
  offset: number,
): AsyncGenerator<RecordedMessage, void> {
  let memberOffset = offset;
  for (const message of reader.messages(offset)) {
    if (reader.nextOffset !== memberOffset) {
      memberOffset = reader.nextOffset;
      await turn();
    }
    yield message;
  }
}

async function* traceMessages(
  path: string,
  { onTorn }: PassOptions,
): AsyncGenerator<RecordedMessage, void> {
  const chunks = createReadStream(path).pipe(createGunzip({ chunkSize: INFLATED_CHUNK_BYTES }));
  const records = new TraceRecords();
  try {
    for await (const chunk of chunks) yield* records.add(chunk as Buffer);
    if (records.pendingBytes > 0) onTorn(`half a record of ${records.pendingBytes} bytes`);
  } catch (error) {
    if (error instanceof RecordingError) onTorn(error.message);
    else onTorn(errorLine(error));
  }
}

/** TraceRecords: cuts the inflated bytes of a trace into messages as they come. */
class TraceRecords {
  #pending: Buffer[] = [];
  pendingBytes = 0;
  /** Below this size another look at what is pending would find no record. */
  #worthALook = 0;
  #firstS: number | null = null;
  #atMs = 0;

  *add(chunk: Buffer): Generator<RecordedMessage, void> {
    this.#pending.push(chunk);
    this.pendingBytes += chunk.length;
    if (this.pendingBytes < this.#worthALook) return;
    const bytes = Buffer.concat(this.#pending);
    let offset = 0;
    while (offset < bytes.length) {
      const record = traceRecordAt(bytes, offset, DEFAULT_LIMITS);
      if (typeof record === 'string') throw new RecordingError(record);
      if (record === null) break;
      yield { atMs: this.#timeOf(record.frames), frames: record.frames };
      offset = record.end;
    }
    const rest = bytes.subarray(offset);
    this.#pending = [rest];
    this.pendingBytes = rest.length;
    // Doubling keeps a record of many chunks from being joined again with each of them.
    this.#worthALook = offset > 0 ? 0 : 2 * rest.length;
  }

  /** Never earlier than the message before; a payload without a time has that one's. */
  #timeOf([, , payload]: readonly Uint8Array[]): number {
    const seconds = batchTimeS(payload);
    if (seconds === null) return this.#atMs;
    this.#firstS ??= seconds;
    this.#atMs = Math.max(this.#atMs, Math.round((seconds - this.#firstS) * 1000));
    return this.#atMs;
  }
}

const FLOAT64 = 0xcb;

/** The float64 that a MessagePack batch [time, events, …] starts with, as every engine writes it. */
function batchTimeS(payload: Uint8Array | undefined): number | null {
  if (payload === undefined || payload.length < 10 || payload[1] !== FLOAT64) return null;
  const seconds = new DataView(payload.buffer, payload.byteOffset).getFloat64(2);
  return Number.isFinite(seconds) ? seconds : null;
}
