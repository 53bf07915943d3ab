/**
 * `kvrelay inspect`: what passes at either end, decoded.
 *
 * stdout   one line an event, text or JSON. Whoever reads it may leave: that ends the command, cleanly.
 * Ends     at the end of a file, at the limit of time or messages, at a signal.
 */
import { createLogger } from '../log.ts';
import { loadInspectFlags } from './inspect-flags.ts';
import { jsonLine, type Line, textLine } from './inspect-line.ts';
import { sourceOf } from './inspect-sources.ts';
import { EXIT_FAILED, EXIT_OK, logFailure, MAX_TIMER_MS, type StopSignals } from './lifecycle.ts';
import { ResultPrinter } from './result-printer.ts';

const LIVE_SECONDS = 10;

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

/** Prints the lines of messages, until there have been enough of them. */
class Printer {
  readonly #format: (line: Line) => string;
  readonly #onEnd: () => void;
  readonly #results: ResultPrinter;
  #messagesLeft: number;

  constructor(isJson: boolean, messages: number | null, onEnd: () => void) {
    this.#format = isJson ? jsonLine : textLine;
    this.#messagesLeft = messages ?? Number.POSITIVE_INFINITY;
    this.#onEnd = onEnd;
    this.#results = new ResultPrinter(onEnd);
  }

  /** The lines of one message. */
  async print(lines: readonly Line[]): Promise<void> {
    if (this.#messagesLeft === 0) return;
    this.#messagesLeft--;
    const written = this.#results.write(lines.map(this.#format).join(''), lines.length);
    if (this.#messagesLeft === 0) this.#onEnd();
    await written;
  }

  async finish(): Promise<void> {
    await this.#results.finish();
  }
}
