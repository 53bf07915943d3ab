/**
 * One program of test/peers that does what it is told, one command after the other.
 *
 * Ends     with its standard input, which closes with the test process too.
 * Throws   when it ends early or is late, or a command fails, with the last of what it wrote.
 */
import { eventually } from '../support/plane-collector.ts';
import { PYTHON } from './engines.ts';
import { PeerProcess } from './peer-process.ts';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const COMMAND_TIMEOUT_MS = 60_000;

/** What `operations` of a program in test/peers names, and its arguments. */
export type Command = { readonly op: string } & Readonly<Record<string, unknown>>;

type Answer = Readonly<Record<string, unknown>>;

export class CommandPeer {
  readonly #name: string;
  readonly #process: PeerProcess;
  readonly #answers: Answer[] = [];
  #asked = 0;

  constructor(name: string, flags: readonly string[]) {
    this.#name = name;
    this.#process = new PeerProcess({
      python: PYTHON,
      program: name,
      flags,
      speaksOn: 'stdout',
      onLine: (line) => this.#answers.push(JSON.parse(line) as Answer),
      stopTimeoutMs: STOP_TIMEOUT_MS,
    });
  }

  get log(): string {
    return this.#process.tail;
  }

  /** What it says of itself once it can be reached. */
  async ready(): Promise<Answer> {
    return this.#answer(this.#asked++, START_TIMEOUT_MS, 'to be ready');
  }

  /** The result of a command. Commands are done in the order in which they were asked for. */
  async ask(command: Command): Promise<unknown> {
    const place = this.#asked++;
    this.#process.writeLine(JSON.stringify(command));
    const answer = await this.#answer(place, COMMAND_TIMEOUT_MS, command.op);
    if ('error' in answer) throw new Error(`${this.#name}, ${command.op}: ${String(answer.error)}`);
    return answer.result;
  }

  /** An orderly end: a client gives its segment back. */
  stop(): Promise<void> {
    return this.#process.stop();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  async #answer(place: number, timeoutMs: number, purpose: string): Promise<Answer> {
    await eventually(() => this.#answers.length > place || this.#process.hasEnded, timeoutMs);
    const answer = this.#answers[place];
    if (answer !== undefined) return answer;
    const how = this.#process.hasEnded ? 'ended' : 'is late';
    throw new Error(`${this.#name} ${how} (${purpose}):\n${this.log}`);
  }
}
