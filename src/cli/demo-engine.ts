/**
 * The engine of `kvrelay demo`: a process of its own, as a real one is, that plays a recording over
 * and over as `kvrelay play --loop --wait` does. Both ends are here: the child's program, and
 * `EngineChild`, by which the demo holds it.
 *
 * argv     recording, endpoint, `bind` or `connect`, dp rank, first sequence number
 * Rank     the recording is of rank 0; the child's batches name the rank it is given.
 * End      with its parent, however that ends: the IPC channel closes then.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { pack } from 'msgpackr';
import { z } from 'zod';
import { errorLine, KvRelayError } from '../errors.ts';
import type { Logger, Warner } from '../log.ts';
import { PlayEndpointError } from './play-engine.ts';
import { Player } from './play-player.ts';
import type { RecordedMessage } from './recording-members.ts';
import { type MessageFile, openMessageFile } from './recording-source.ts';

/** Built or not, the child runs the file that its parent has loaded. */
const MODULE = fileURLToPath(import.meta.url);

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

function report(message: EngineReport, whenSent: () => void = () => undefined): void {
  // Without a channel there is no parent left to tell.
  if (process.connected) process.send?.(message, whenSent);
  else process.exit(1);
}

function fail(error: unknown): void {
  // The demo names the address and the remedy itself.
  const reason = errorLine(error instanceof PlayEndpointError ? error.cause : error);
  report({ kind: 'failed', reason }, () => process.exit(1));
}

/** The batches of `file`, [time, events, 0], as of another rank: their last byte is set right. */
async function* ofRank(file: MessageFile, dpRank: number): AsyncGenerator<RecordedMessage> {
  const onTorn = (reason: string): void => report({ kind: 'torn', reason });
  for await (const { atMs, frames } of file.messages({ onTorn })) {
    const [topic, number, payload] = frames;
    if (topic === undefined || number === undefined || payload === undefined) continue;
    const renamed = dpRank === 0 ? payload : Buffer.concat([payload.subarray(0, -1), pack(dpRank)]);
    yield { atMs, frames: [topic, number, renamed] };
  }
}

async function main(argv: readonly string[]): Promise<void> {
  const [path = '', endpoint = '', direction, rank, first = '0'] = argv;
  const file = openMessageFile(path);
  const dpRank = Number(rank);
  const firstSequence = BigInt(first);
  const player = new Player({
    engine: {
      endpoint,
      direction: direction === 'connect' ? 'connect' : 'bind',
      replayEndpoint: null,
      bufferSteps: 1,
      replayForm: 'new',
      firstSequence,
    },
    messages: () => ofRank(file, dpRank),
    rate: null,
    loops: true,
    waits: true,
    drop: 0,
    seed: 0,
    delayMs: 0,
    restartAt: null,
    onEvent: ({ kind }) => {
      if (kind === 'again') report({ kind });
    },
  });
  report({ kind: 'ready', endpoint: (await player.open()).endpoint });
  // Not the first engine here: what the relay still holds is the one before's.
  if (firstSequence > 0n) await player.clear(dpRank);
  await player.play();
}

if (process.argv[1] === MODULE) {
  process.on('disconnect', () => process.exit(0));
  process.on('uncaughtException', fail);
  // A terminal and a supervisor signal the whole group, but when to end is the parent's to say.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => undefined);
  main(process.argv.slice(2)).catch(fail);
}
