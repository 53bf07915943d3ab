/**
 * `kvrelay inspect`: what passes at either end, decoded.
 *
 * stdout   one line an event, text or JSON. Whoever reads it may leave: that ends the command, cleanly.
 * Ends     at the end of a file, at the limit of time or messages, at a signal.
 */
import { once } from 'node:events';
import { createLogger } from '../log.ts';
import { loadInspectFlags } from './inspect-flags.ts';
import { jsonLine, type Line, textLine } from './inspect-line.ts';
import { sourceOf } from './inspect-sources.ts';
import { EXIT_FAILED, EXIT_OK, logFailure, MAX_TIMER_MS, type StopSignals } from './lifecycle.ts';

const LIVE_SECONDS = 10;
/** Lines after which signals and a reader that has left are looked for. */
const TURN_LINES = 256;

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function inspect(argv: readonly string[], signals: StopSignals): Promise<number> {
  const flags = loadInspectFlags(argv, process.env);
  const logger = createLogger({ level: flags.logLevel, format: flags.logFormat });
  const ended = new AbortController();
  const atEnd = new Promise<void>((resolve) => {
    ended.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const printer = new Printer(flags.json, flags.messages, () => ended.abort());
  const source = sourceOf(flags.target, flags, logger, ended.signal);
  void signals.first.then(() => ended.abort());
  const isBounded = flags.follow || flags.messages !== null || flags.target.kind === 'file';
  const seconds = flags.seconds ?? (isBounded ? null : LIVE_SECONDS);
  const timeout = seconds ?? Number.POSITIVE_INFINITY;
  // A source that waits keeps no process alive by itself.
  const timer = setTimeout(() => ended.abort(), Math.min(timeout * 1000, MAX_TIMER_MS));
  try {
    if (!signals.received) await Promise.race([source.run((lines) => printer.print(lines)), atEnd]);
  } catch (error) {
    logFailure(logger, error);
    return EXIT_FAILED;
  } finally {
    clearTimeout(timer);
    ended.abort();
    await source.close();
  }
  await printer.finish();
  return EXIT_OK;
}

class Printer {
  readonly #format: (line: Line) => string;
  readonly #onEnd: () => void;
  #messagesLeft: number;
  #linesInTurn = 0;
  #hasReader = true;

  constructor(isJson: boolean, messages: number | null, onEnd: () => void) {
    this.#format = isJson ? jsonLine : textLine;
    this.#messagesLeft = messages ?? Number.POSITIVE_INFINITY;
    this.#onEnd = onEnd;
    process.stdout.on('error', () => {
      this.#hasReader = false;
      onEnd();
    });
  }

  /** The lines of one message. */
  async print(lines: readonly Line[]): Promise<void> {
    if (this.#messagesLeft === 0 || !this.#hasReader) return;
    this.#messagesLeft--;
    const isTaken = process.stdout.write(lines.map(this.#format).join(''));
    if (this.#messagesLeft === 0) this.#onEnd();
    this.#linesInTurn += lines.length;
    if (isTaken && this.#linesInTurn < TURN_LINES) return;
    this.#linesInTurn = 0;
    if (!isTaken && this.#hasReader) await drained();
    else await new Promise((resolve) => void setImmediate(resolve));
  }

  /** The exit would cut off what stdout has not taken yet. */
  async finish(): Promise<void> {
    if (!this.#hasReader) return;
    await new Promise<void>((resolve) => {
      process.stdout.once('error', () => resolve());
      process.stdout.write('', () => resolve());
    });
  }
}

async function drained(): Promise<void> {
  // A reader that leaves takes nothing more: `once` then rejects, and the printer knows already.
  await once(process.stdout, 'drain').catch(() => undefined);
}
