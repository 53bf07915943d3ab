/**
 * The engine of `kvrelay demo`: a process of its own, as a real one is, that publishes a recording
 * over and over as vLLM's publisher does. Both ends are here: the child's program, and
 * `EngineChild`, by which the demo holds it.
 *
 * argv     recording, endpoint, `bind` or `connect`, dp rank, first sequence number
 * Frames   [0] topic   [1] sequence, u64 BE, one more each message   [2] payload
 * Pace     the recorded times. While nobody is subscribed it waits: nothing is published to no one.
 * Again    at the recording's end an AllBlocksCleared: the next pass starts with an empty cache.
 * End      with its parent, however that ends: the IPC channel closes then.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pack } from 'msgpackr';
import { XPublisher } from 'zeromq';
import { z } from 'zod';
import { errorLine, KvRelayError } from '../errors.ts';
import type { Logger, Warner } from '../log.ts';
import { type RecordedMessage, RecordingReader } from './recording.ts';

/** Built or not, the child runs the file that its parent has loaded. */
const MODULE = fileURLToPath(import.meta.url);

/** Behind by more than this, it was suspended: it goes on from here, instead of hurrying after. */
const MAX_LATE_MS = 1000;
const SUBSCRIBE = 1;

const RESTART_DELAY_MS = 1000;
const STOP_MS = 1000;

/** What the child tells its parent. */
type EngineReport =
  | { readonly kind: 'ready'; readonly endpoint: string }
  | { readonly kind: 'torn'; readonly reason: string }
  | { readonly kind: 'again' }
  | { readonly kind: 'failed'; readonly reason: string };

const reportShape: z.ZodType<EngineReport> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready'), endpoint: z.string() }),
  z.object({ kind: z.literal('torn'), reason: z.string() }),
  z.object({ kind: z.literal('again') }),
  z.object({ kind: z.literal('failed'), reason: z.string() }),
]);

/** The recorded engine cannot be started. */
class DemoEngineError extends KvRelayError {
  readonly code = 'KVR_DEMO_ENGINE';

  constructor(endpoint: string, reason: string) {
    super(`The recorded engine cannot publish on ${endpoint}: ${reason}`, {
      remedy: 'Leave the engine endpoint out for a free port; install again if it is the recording',
    });
  }
}

interface EngineChildOptions {
  /** Path of the recording. */
  readonly recording: string;
  /** Port 0 asks for a free one, which later children keep. */
  readonly endpoint: string;
  readonly direction: 'bind' | 'connect';
  readonly dpRank: number;
  /** Number of the next message, for a child that follows another one. */
  readonly nextSequence: () => bigint;
  readonly logger: Logger;
  readonly warner: Pick<Warner, 'warn'>;
}

/** EngineChild: keeps one child alive until `stop()`; each that dies is followed by another. */
export class EngineChild {
  readonly #options: EngineChildOptions;
  #endpoint: string;
  #child: ChildProcess | null = null;
  #restart: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(options: EngineChildOptions) {
    this.#options = options;
    this.#endpoint = options.endpoint;
  }

  /** The address the engine publishes on; rejects with DemoEngineError where it cannot. */
  async start(): Promise<string> {
    const { recording, direction, dpRank, nextSequence, logger } = this.#options;
    const args = [recording, this.#endpoint, direction, `${dpRank}`, `${nextSequence()}`];
    const child = fork(MODULE, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      let reason = 'its process cannot be started';
      child.on('message', (message) => {
        const report = reportShape.parse(message);
        if (report.kind === 'failed') reason = report.reason;
        else if (report.kind === 'ready') {
          this.#endpoint = report.endpoint;
          resolve();
        } else this.#log(report);
      });
      child.once('exit', () => reject(new DemoEngineError(this.#endpoint, reason)));
      child.once('error', (error) => reject(new DemoEngineError(this.#endpoint, error.message)));
    });
    child.once('exit', (code, signal) => this.#onEnd(signal ?? `exit code ${code}`));
    logger.info({ endpoint: this.#endpoint, pid: child.pid }, 'the recorded engine plays');
    return this.#endpoint;
  }

  /** Resolves when the child is gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    if (child.connected) child.disconnect();
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(impatience);
  }

  #onEnd(how: string): void {
    if (this.#isStopping) return;
    const fields = { how, restartDelayMs: RESTART_DELAY_MS };
    this.#options.warner.warn('demo_engine', fields, 'the recorded engine ended; another follows');
    this.#startLater();
  }

  #startLater(): void {
    this.#restart = setTimeout(() => {
      this.start().catch((error: unknown) => {
        if (this.#isStopping) return;
        this.#options.warner.warn('demo_engine_start', {}, errorLine(error));
        this.#startLater();
      });
    }, RESTART_DELAY_MS);
  }

  #log(report: Extract<EngineReport, { kind: 'torn' | 'again' }>): void {
    const { logger } = this.#options;
    if (report.kind === 'again') logger.info('the recording is played again');
    else logger.warn({ reason: report.reason }, 'the recording is torn: the rest of it is played');
  }
}

/** RecordedEngine: the child's publisher socket and the number of its next message. */
class RecordedEngine {
  readonly #socket = new XPublisher({ linger: 0, sendHighWaterMark: 100_000 });
  readonly #dpRank: number;
  #sequence: bigint;
  #subscriptions = 0;
  #onSubscribed: () => void = () => undefined;

  constructor(dpRank: number, firstSequence: bigint) {
    this.#dpRank = dpRank;
    this.#sequence = firstSequence;
  }

  /** Returns the address with the port that was taken. */
  async open(endpoint: string, direction: string): Promise<string> {
    if (direction === 'connect') this.#socket.connect(endpoint);
    else await this.#socket.bind(endpoint);
    void this.#followSubscriptions();
    return this.#socket.lastEndpoint ?? endpoint;
  }

  async play(messages: readonly RecordedMessage[], onEnd: () => void): Promise<never> {
    // Not the first engine here: what the relay still holds is the one before's.
    if (this.#sequence > 0n) await this.#publishClear();
    for (;;) {
      let startMs = performance.now() - (messages[0]?.atMs ?? 0);
      for (const { atMs, frames } of messages) {
        const [topic, , payload] = frames;
        if (topic === undefined || payload === undefined || frames.length !== 3) continue;
        const waitMs = startMs + atMs - performance.now();
        if (waitMs < -MAX_LATE_MS) startMs -= waitMs;
        // A wait of 0 too: the end of the parent must not wait behind a burst.
        await delay(Math.max(waitMs, 0));
        await this.#publish(topic, this.#withRank(payload));
      }
      await this.#publishClear();
      onEnd();
    }
  }

  /** The batch [time, events, rank] was recorded of rank 0: its last byte, which is set right. */
  #withRank(payload: Uint8Array): Uint8Array {
    if (this.#dpRank === 0) return payload;
    return Buffer.concat([payload.subarray(0, -1), pack(this.#dpRank)]);
  }

  /** The same batch as vLLM 0.33 writes it. */
  #publishClear(): Promise<void> {
    const batch = [Date.now() / 1000, [{ type: 'AllBlocksCleared' }], this.#dpRank];
    return this.#publish(Buffer.alloc(0), pack(batch));
  }

  async #publish(topic: Uint8Array, payload: Uint8Array): Promise<void> {
    while (this.#subscriptions === 0) await this.#subscribed();
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(this.#sequence);
    this.#sequence++;
    await this.#socket.send([Buffer.from(topic), number, Buffer.from(payload)]);
  }

  #subscribed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSubscribed = resolve;
    });
  }

  async #followSubscriptions(): Promise<void> {
    for await (const [change] of this.#socket) {
      this.#subscriptions += change?.[0] === SUBSCRIBE ? 1 : -1;
      if (this.#subscriptions > 0) this.#onSubscribed();
    }
  }
}

function report(message: EngineReport, whenSent: () => void = () => undefined): void {
  // Without a channel there is no parent left to tell.
  if (process.connected) process.send?.(message, whenSent);
  else process.exit(1);
}

function fail(error: unknown): void {
  report({ kind: 'failed', reason: errorLine(error) }, () => process.exit(1));
}

async function main(argv: readonly string[]): Promise<void> {
  const [path, endpoint, direction, dpRank, first] = argv;
  const reader = new RecordingReader(readFileSync(path ?? ''));
  const messages = [...reader.messages()];
  if (reader.tornTail !== null) report({ kind: 'torn', reason: reader.tornTail });
  if (messages.length === 0) throw new Error(`${path} holds no messages`);
  const engine = new RecordedEngine(Number(dpRank), BigInt(first ?? 0));
  report({ kind: 'ready', endpoint: await engine.open(endpoint ?? '', direction ?? '') });
  await engine.play(messages, () => report({ kind: 'again' }));
}

if (process.argv[1] === MODULE) {
  process.on('disconnect', () => process.exit(0));
  process.on('uncaughtException', fail);
  // A terminal and a supervisor signal the whole group, but when to end is the parent's to say.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => undefined);
  main(process.argv.slice(2)).catch(fail);
}
