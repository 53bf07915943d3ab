/**
 * `kvrelay record`: an engine's messages into a file, as they come.
 *
 * File     one gzip member a second or 256 KiB, written when it is full: what ends the process costs
 *          one member at most. Only its owner may read it.
 * Ends     at a signal, after --batches or --seconds, or where the file cannot be written on.
 * stdout   a summary.
 */
import { closeSync, rmSync, writeFileSync } from 'node:fs';
import { Subscriber } from 'zeromq';
import { connectable, formatZmqAddress } from '../config/addresses.ts';
import { MessageReader, PeerCount, socketOptions } from '../connections/zmq.ts';
import { oneLine } from '../errors.ts';
import { readFrames } from '../listener/frames.ts';
import { GapCounter } from '../listener/gap-counter.ts';
import { EngineBindError } from '../listener/zmq-engine-socket.ts';
import { createLogger, createWarner, type Logger, type Warner } from '../log.ts';
import {
  EXIT_FAILED,
  EXIT_OK,
  logFailure,
  MAX_TIMER_MS,
  type StopSignals,
  writeOut,
} from './lifecycle.ts';
import { createRecordingFile } from './record-file.ts';
import { loadRecordFlags, type RecordFlags } from './record-flags.ts';
import { Redactor } from './record-redact.ts';
import { RecordingError, RecordingWriter } from './recording.ts';

const FLUSH_MS = 1000;
/** How long what has already arrived may take to be written at the end. */
const FINISH_MS = 1000;
const MAX_AT_MS = 0xffff_ffff;
/** A recorder must keep up with its engine: more would cost more time than it saves room. */
const COMPRESSION_LEVEL = 3;

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function record(argv: readonly string[], signals: StopSignals): Promise<number> {
  const flags = loadRecordFlags(argv, process.env);
  const logger = createLogger({ level: flags.logLevel, format: flags.logFormat });
  // Whoever reads the summary may leave; what is recorded stays.
  process.stdout.on('error', () => undefined);
  if (signals.received) return EXIT_OK;
  const recorder = new Recorder(flags, logger);
  try {
    await recorder.start();
    void signals.first.then(() => recorder.end());
    await recorder.ended;
  } catch (error) {
    logFailure(logger, error);
    await recorder.stop().catch(() => undefined);
    return EXIT_FAILED;
  }
  await recorder.stop();
  await writeOut(recorder.summary());
  return EXIT_OK;
}

class Recorder {
  /** Resolves when it is time to stop; rejects where the file cannot be written. */
  readonly ended: Promise<void>;
  end: () => void = () => undefined;
  readonly #flags: RecordFlags;
  readonly #logger: Logger;
  readonly #warner: Warner;
  readonly #descriptor: number;
  readonly #writer: RecordingWriter;
  readonly #redactor: Redactor | null;
  readonly #socket: Subscriber;
  readonly #peers: PeerCount;
  readonly #numbers = new GapCounter();
  #fail: (error: unknown) => void = () => undefined;
  #reader: MessageReader | null = null;
  #boundTo: string | null = null;
  #timers: NodeJS.Timeout[] = [];
  #startMs: number | null = null;
  #lastMs = 0;
  #messages = 0;
  #messageBytes = 0;
  #fileBytes = 0;
  #missing = 0;
  #malformed = 0;
  #refused = 0;
  #hasFailed = false;

  constructor(flags: RecordFlags, logger: Logger) {
    this.#flags = flags;
    this.#logger = logger;
    this.#warner = createWarner(logger);
    this.ended = new Promise((resolve, reject) => {
      this.end = resolve;
      this.#fail = reject;
    });
    // Whether somebody waits already or not, a failure is no unhandled one.
    this.ended.catch(() => undefined);
    this.#redactor = flags.redact ? new Redactor() : null;
    this.#descriptor = createRecordingFile(flags);
    this.#writer = new RecordingWriter(
      {
        format: 'kvrelay-recording',
        version: 1,
        engine: flags.engine,
        block_size: flags.blockSize,
        recorded_at: new Date().toISOString(),
        description: flags.description,
        ...(flags.redact && { redacted: true }),
      },
      (bytes) => this.#write(bytes),
      COMPRESSION_LEVEL,
    );
    const { engineEndpoint, engineReceiveHwm, engineMaxMessageBytes } = flags;
    this.#socket = new Subscriber({
      ...socketOptions(formatZmqAddress(engineEndpoint), 0),
      receiveHighWaterMark: engineReceiveHwm,
      maxMessageSize: engineMaxMessageBytes,
    });
    this.#peers = new PeerCount(this.#socket, () => this.#reportPeers());
  }

  /** Rejects where the address cannot be bound; the file is then gone again. */
  async start(): Promise<void> {
    const { out, force, redact, seconds, engineBind, engineEndpoint, engineTopic } = this.#flags;
    const endpoint = formatZmqAddress(engineBind ? engineEndpoint : connectable(engineEndpoint));
    this.#socket.subscribe(engineTopic);
    try {
      if (engineBind) {
        await this.#socket.bind(endpoint);
        this.#boundTo = this.#socket.lastEndpoint;
      } else {
        this.#socket.connect(endpoint);
      }
    } catch (error) {
      if (!force) rmSync(out, { force: true });
      throw new EngineBindError(endpoint, error);
    }
    this.#logger.info({ state: 'ready', endpoint, out, redact }, 'recording');
    if (!redact) {
      this.#logger.warn({ out }, 'the file holds token ids: share it only with --redact');
    }
    this.#timers.push(setInterval(() => this.#flush(), FLUSH_MS));
    if (seconds !== null) {
      this.#timers.push(setTimeout(() => this.end(), Math.min(seconds * 1000, MAX_TIMER_MS)));
    }
    this.#reader = new MessageReader(this.#socket, (frames) => this.#take(frames));
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
    await this.#reader?.drain(FINISH_MS);
    if (this.#reader === null) this.#socket.close();
    else await this.#reader.close(this.#boundTo);
    this.#flush();
    closeSync(this.#descriptor);
    this.#warner.flush();
    // Rejects where the last member could not be written.
    this.end();
    await this.ended;
  }

  summary(): string {
    const seconds = (this.#lastMs / 1000).toFixed(1);
    const size = `${this.#fileBytes} bytes${this.#redactor === null ? '' : ', redacted'}`;
    return [
      `recorded ${this.#messages} messages of ${this.#messageBytes} bytes in ${seconds} s:`,
      `  file     ${oneLine(this.#flags.out)}, ${size}`,
      `  missing  ${this.#missing} by their numbers, ${this.#malformed} malformed, ` +
        `${this.#refused} too large to record`,
      '',
    ].join('\n');
  }

  #take(frames: readonly Uint8Array[]): void {
    const { batches } = this.#flags;
    if (this.#hasFailed || (batches !== null && this.#messages >= batches)) return;
    const nowMs = performance.now();
    this.#startMs ??= nowMs;
    this.#lastMs = Math.min(Math.round(nowMs - this.#startMs), MAX_AT_MS);
    this.#count(frames);
    try {
      const kept = this.#redactor?.redact(frames) ?? frames;
      this.#writer.add({ atMs: this.#lastMs, frames: kept });
    } catch (error) {
      if (!(error instanceof RecordingError)) {
        this.#giveUp(error);
        return;
      }
      this.#refused++;
      this.#warner.warn('refused', { frames: frames.length }, 'a message was not recorded');
      return;
    }
    this.#messages++;
    for (const frame of frames) this.#messageBytes += frame.length;
    if (this.#messages === batches) this.end();
  }

  #count(frames: readonly Uint8Array[]): void {
    const message = readFrames(frames, 'safe');
    if (typeof message === 'string') {
      this.#malformed++;
      this.#warner.warn(
        'malformed',
        { reason: message },
        'a malformed message is recorded as it is',
      );
      return;
    }
    const isFirst = this.#numbers.highest === null;
    const missingBatches = this.#numbers.observe(message.sequence);
    // What came before the recording began is not missing in it.
    if (isFirst) return;
    this.#missing += missingBatches;
    if (missingBatches === 0) return;
    this.#warner.warn('gap', { missingBatches }, 'messages of the engine are missing');
  }

  #flush(): void {
    if (this.#hasFailed) return;
    try {
      this.#writer.flush();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** Behind a member that is not whole no further one would be read. */
  #giveUp(error: unknown): void {
    this.#hasFailed = true;
    this.#fail(error);
  }

  /** Whole, or it throws: a file descriptor is written from where it stands. */
  #write(bytes: Uint8Array): void {
    writeFileSync(this.#descriptor, bytes);
    this.#fileBytes += bytes.length;
  }

  #reportPeers(): void {
    const isConnected = this.#peers.peers > 0;
    this.#logger.info({ isConnected }, `engine ${isConnected ? 'connected' : 'disconnected'}`);
  }
}
