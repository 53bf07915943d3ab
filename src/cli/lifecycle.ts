/**
 * The life of one process around one worker: signals, start, stop, exit code.
 *
 * Signals  the first stops cleanly, also during the start; a second, later than an echo of the first,
 *          ends the process at once.
 * Bounds   a stop that has not ended `HARD_STOP_MS` after its signal is given up.
 * Codes    0 after a clean stop, 1 where start or stop failed.
 */
import { errorCode, errorLine, InvariantError } from '../errors.ts';
import type { Logger } from '../log.ts';

export interface Runnable {
  start(): Promise<void>;
  /** May be called while `start()` is under way, and after it failed. */
  stop(): Promise<void>;
}

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** A supervisor is promised an end within 8 s; what is left is for the exit itself. */
const HARD_STOP_MS = 7800;
/** After a failed start there is nothing to drain, only to close. */
const FAILED_START_STOP_MS = 2000;
/** Node's longest timer; a longer one would end at once. */
export const MAX_TIMER_MS = 0x7fff_ffff;

/**
 * npm and `timeout` hand on a signal that this process already has from the terminal or its group: within
 * this time of the first it is that one again, and no wish to be ended without a drain.
 */
const REPEAT_MS = 250;

type StopSignal = 'SIGTERM' | 'SIGINT';
const STOP_SIGNALS: readonly StopSignal[] = ['SIGTERM', 'SIGINT'];

export interface SignalSource {
  on(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
  off(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
}

/** Takes the stop signals from its construction on, so that one during loading is not lost. */
export class StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<StopSignal>;
  readonly #source: SignalSource;
  readonly #listener: (signal: StopSignal) => void;
  #count = 0;

  constructor(source: SignalSource, onSecond: () => void) {
    let resolveFirst: (signal: StopSignal) => void = () => undefined;
    let firstMs = 0;
    this.first = new Promise((resolve) => {
      resolveFirst = resolve;
    });
    this.#source = source;
    this.#listener = (signal) => {
      this.#count++;
      if (this.#count === 1) {
        firstMs = performance.now();
        resolveFirst(signal);
      } else if (performance.now() - firstMs > REPEAT_MS) {
        onSecond();
      }
    };
    for (const signal of STOP_SIGNALS) source.on(signal, this.#listener);
  }

  get received(): boolean {
    return this.#count > 0;
  }

  dispose(): void {
    for (const signal of STOP_SIGNALS) this.#source.off(signal, this.#listener);
  }
}

export interface LifecycleOptions {
  readonly worker: Runnable;
  readonly logger: Logger;
  readonly signals: StopSignals;
  readonly onStarted?: () => void;
  readonly hardStopMs?: number;
}

/** Starts the worker, waits for a signal and stops it; resolves with the exit code. */
export async function runUntilSignal(options: LifecycleOptions): Promise<number> {
  const { worker, logger, signals, onStarted, hardStopMs = HARD_STOP_MS } = options;
  if (signals.received) return EXIT_OK;
  // Signal handlers keep no process alive, and a worker without sockets would not either.
  const keepAlive = setInterval(() => undefined, MAX_TIMER_MS);
  try {
    const start = worker.start().then(
      () => 'started' as const,
      (error: unknown) => ({ error }),
    );
    const outcome = await Promise.race([start, signals.first]);
    if (typeof outcome === 'object') {
      logFailure(logger, outcome.error);
      await within(worker.stop(), FAILED_START_STOP_MS).catch(() => undefined);
      return EXIT_FAILED;
    }
    if (outcome === 'started') onStarted?.();
    logger.info({ signal: await signals.first }, 'stopping');
    return await stopWorker(worker, logger, hardStopMs);
  } finally {
    clearInterval(keepAlive);
  }
}

async function stopWorker(worker: Runnable, logger: Logger, hardStopMs: number): Promise<number> {
  try {
    if (await within(worker.stop(), hardStopMs)) {
      logger.info('stopped');
      return EXIT_OK;
    }
    logger.fatal(
      { code: 'KVR_STOP_TIMEOUT', hardStopMs },
      'the stop took too long and is given up',
    );
  } catch (error) {
    logFailure(logger, error);
  }
  return EXIT_FAILED;
}

/** What libzmq's binding says whenever an option is set later, although this one takes effect at once. */
const HARMLESS_WARNING = 'Socket option will not take effect until next connect/bind.';

/** Node prints warnings as plain text; on stderr there is nothing but log lines. */
export function logNodeWarnings(logger: Pick<Logger, 'warn'>): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    if (message !== HARMLESS_WARNING) logger.warn({ name }, message);
  });
}

/** One line for what ended the process; the stack only where the code, not the world, is wrong. */
export function logFailure(logger: Logger, error: unknown): void {
  const code = errorCode(error);
  const isDefect = error instanceof InvariantError || /^(KVR_UNEXPECTED$|ERR_)/.test(code);
  logger.fatal({ code, ...(isDefect && { err: error }) }, errorLine(error));
}

/** Resolves once stdout has taken `text`: the exit would cut off the rest. */
export async function writeOut(text: string): Promise<void> {
  await new Promise<void>((resolve) => void process.stdout.write(text, () => resolve()));
}

/** True where `ending` came in time; rejects as it does. */
async function within(ending: Promise<void>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  try {
    return await Promise.race([ending.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
}
