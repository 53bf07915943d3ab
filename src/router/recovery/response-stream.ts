/**
 * ResponseStream: the connection to a router over which one answer goes.
 *
 * Opens    at once, with handshake and prologue: a router waits 10 s for them, and longer for the rest.
 * Writes   in slices, as fast as the router reads and never for long at a time; what is written is not
 *          copied and must not change.
 * Ends     when the router closes it, which it does once it has the answer; a farewell before that counts
 *          as its end. What it says otherwise is ignored.
 * Bounds   the whole stream in time, and the router's farewell in time and bytes.
 * Source   ai-dynamo/dynamo 1.6.1, TCP response stream.
 */
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { FailedAnswerReason } from '../../metrics/recovery-counts.ts';
import type { CallBack, Codec } from './query.ts';
import { answerHead, closing, FAREWELLS, handshake, PROLOGUE } from './response-messages.ts';

export interface ResponseStreamLimits {
  readonly connectTimeoutMs: number;
  /** A router gives an answer up after 30 s. */
  readonly totalTimeoutMs: number;
  /** Without a byte taken by the router. */
  readonly stallTimeoutMs: number;
  /** For the router to close, once it has been sent everything. */
  readonly farewellTimeoutMs: number;
}

export const DEFAULT_STREAM_LIMITS: ResponseStreamLimits = {
  connectTimeoutMs: 5000,
  totalTimeoutMs: 32_000,
  stallTimeoutMs: 10_000,
  farewellTimeoutMs: 10_000,
};

const SLICE_BYTES = 256 << 10;

/** The stream ended before the answer was through. */
export class StreamError extends Error {
  readonly reason: FailedAnswerReason;

  constructor(reason: FailedAnswerReason) {
    super(`the answer did not reach the router: ${reason}`);
    this.reason = reason;
  }
}

export class ResponseStream {
  readonly #limits: ResponseStreamLimits;
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  /** Why it is over; null while it is not. */
  #failure: FailedAnswerReason | null = null;
  #isConnected = false;
  #said: Buffer = Buffer.alloc(0);
  #wake: (() => void) | null = null;

  /** `tls`: null where the router is called without. */
  constructor(
    callBack: CallBack,
    limits: ResponseStreamLimits = DEFAULT_STREAM_LIMITS,
    tls: ConnectionOptions | null = null,
  ) {
    const { host, port, subject } = callBack;
    this.#limits = limits;
    const to = { host, port, noDelay: true };
    this.#socket = tls === null ? connect(to) : connectTls({ ...tls, ...to });
    this.#socket.write(Buffer.concat([handshake(subject), PROLOGUE]));
    this.#timer = setTimeout(() => this.#fail('timeout'), limits.totalTimeoutMs);
    this.#socket.setTimeout(limits.connectTimeoutMs, () =>
      this.#fail(this.#isConnected ? 'timeout' : 'unreachable'),
    );
    this.#socket.on(tls === null ? 'connect' : 'secureConnect', () => {
      this.#isConnected = true;
      this.#socket.setTimeout(0);
      this.#wake?.();
    });
    this.#socket.on('data', (bytes) => this.#hear(bytes));
    this.#socket.on('drain', () => this.#wake?.());
    this.#socket.on('error', () => undefined);
    this.#socket.on('end', () => this.#fail('closed_early'));
    this.#socket.on('close', () => this.#fail(this.#isConnected ? 'closed_early' : 'unreachable'));
  }

  get isOver(): boolean {
    return this.#failure !== null;
  }

  /** Resolves once the router is connected. Throws StreamError, as do the others here. */
  async opened(): Promise<void> {
    while (!this.#isConnected) await this.#change();
    this.#check();
  }

  /**
   * Hands over the answer, whose body is `pieces`, and what ends it. The router may close the stream
   * before the last of it is confirmed: it reads no further than the answer.
   */
  async answer(pieces: readonly Uint8Array[], codec: Codec): Promise<void> {
    const bodyBytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#socket.setTimeout(this.#limits.stallTimeoutMs);
    let sliceCount = 0;
    for (const slice of slices([answerHead(bodyBytes), ...pieces, closing(codec)])) {
      // A router that keeps up drains within one turn of the event loop: others have to get theirs.
      if (sliceCount++ > 0) await new Promise((resolve) => setImmediate(resolve));
      while (this.#socket.writableNeedDrain) await this.#change();
      this.#check();
      this.#socket.write(slice);
    }
  }

  /** Resolves when the router has closed the stream, or its time for that is over. */
  async closed(): Promise<void> {
    this.#socket.setTimeout(this.#limits.farewellTimeoutMs);
    while (!this.isOver) await this.#wait();
  }

  /** Ends it now, in whatever state. */
  destroy(): void {
    this.#fail('closed_early');
  }

  #hear(bytes: Buffer): void {
    const longest = Math.max(...FAREWELLS.map(({ length }) => length));
    this.#said = Buffer.concat([this.#said, bytes]).subarray(-longest);
    if (FAREWELLS.some((farewell) => this.#said.includes(farewell))) this.#fail('closed_early');
  }

  /** The first reason counts; it is a failure only for whoever still has something to write. */
  #fail(reason: FailedAnswerReason): void {
    if (this.#failure !== null) return;
    this.#failure = reason;
    clearTimeout(this.#timer);
    this.#socket.destroy();
    this.#wake?.();
  }

  #check(): void {
    if (this.#failure !== null) throw new StreamError(this.#failure);
  }

  async #change(): Promise<void> {
    this.#check();
    await this.#wait();
    this.#check();
  }

  /** Until the socket connects, drains or is over; one waits at a time. */
  async #wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = null;
  }
}

/** The pieces in slices: small ones joined, so that each is worth a write, large ones cut. */
function* slices(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
  let small: Uint8Array[] = [];
  let smallBytes = 0;
  for (const piece of pieces) {
    for (let from = 0; from < piece.length; from += SLICE_BYTES) {
      const part = piece.subarray(from, from + SLICE_BYTES);
      small.push(part);
      smallBytes += part.length;
      if (smallBytes < SLICE_BYTES) continue;
      yield small.length === 1 ? part : Buffer.concat(small);
      small = [];
      smallBytes = 0;
    }
  }
  if (smallBytes > 0) yield Buffer.concat(small);
}
