/**
 * ResultPrinter: results on stdout, at the pace of whoever reads them.
 *
 * Reader   may leave at any time: that is no failure, and told once.
 * Turns    signals and other sockets have theirs however many lines there are.
 */
import { once } from 'node:events';

/** Lines after which signals and a reader that has left are looked for. */
const TURN_LINES = 256;

export class ResultPrinter {
  #linesInTurn = 0;
  #hasReader = true;

  constructor(onReaderGone: () => void = () => undefined) {
    process.stdout.on('error', () => {
      this.#hasReader = false;
      onReaderGone();
    });
  }

  get hasReader(): boolean {
    return this.#hasReader;
  }

  /** `text` is whole lines, `lineCount` of them; resolves once more may be written. */
  async write(text: string, lineCount = 1): Promise<void> {
    if (!this.#hasReader) return;
    const isTaken = process.stdout.write(text);
    this.#linesInTurn += lineCount;
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
