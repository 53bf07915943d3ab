/**
 * Stock Dynamo 1.6.1 processes of test/peers: a worker that registers itself, a router that follows.
 *
 * Ends     each with its standard input, which closes with the test process too.
 * Throws   when one ends early or is late, with the last of what it wrote.
 */
import { parseLosslessJson } from '../../src/protocol/lossless-json.ts';
import { natsServerAvailable } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { PeerProcess } from './peer-process.ts';

/** A Python with Dynamo's runtime; empty where there is none. */
export const DYNAMO_PYTHON: string = process.env.KVRELAY_INTEROP_DYNAMO ?? '';

/** With KVRELAY_REQUIRE_ALL=1 a missing Dynamo is an error, so that nothing is skipped unseen. */
export function hasDynamo(): boolean {
  if (DYNAMO_PYTHON !== '' && natsServerAvailable()) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error('Dynamo cannot run, and KVRELAY_REQUIRE_ALL=1 forbids to skip it');
  }
  return false;
}

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;
const ANSWER_TIMEOUT_MS = 30_000;

export type PeerProgram = 'dynamo_worker' | 'dynamo_router' | 'dynamo_frontend';

type Line = Readonly<Record<string, unknown>>;

/** One block as the router has it. */
export type IndexRow = readonly [
  workerId: bigint | number,
  dpRank: number,
  storageTier: string,
  parentHash: bigint | number | null,
  blockHash: bigint | number,
  tokensHash: bigint | number,
];

/** A prompt as a router is asked for it. */
export interface Prompt {
  readonly tokens: readonly number[];
  readonly lora_name?: string;
  readonly cache_salt?: string;
}

/** Blocks at a prompt's start: on the device, and how many the tiers below add to them. */
export interface OverlapScores {
  readonly num_blocks: number;
  readonly workers: readonly {
    readonly dp_rank: number;
    readonly device_blocks: number;
    readonly host_pinned_extension_blocks: number;
    /** Of the disk tier and the external one together. */
    readonly disk_extension_blocks: number;
  }[];
}

export class DynamoPeer {
  readonly #process: PeerProcess;
  readonly #lines: Line[] = [];

  private constructor(program: PeerProgram, flags: readonly string[], env: Record<string, string>) {
    this.#process = new PeerProcess({
      python: DYNAMO_PYTHON,
      program,
      flags,
      env,
      speaksOn: 'stdout',
      onLine: (line) => this.#take(line),
      stopTimeoutMs: STOP_TIMEOUT_MS,
    });
  }

  static async start(
    program: PeerProgram,
    flags: readonly string[],
    env: Record<string, string> = {},
  ): Promise<DynamoPeer> {
    const peer = new DynamoPeer(program, flags, env);
    const isReady = (): boolean => peer.#lines.some(({ state }) => state === 'ready');
    await eventually(() => isReady() || peer.#process.hasEnded, START_TIMEOUT_MS);
    if (isReady()) return peer;
    await peer.kill();
    throw new Error(`${program} is not ready:\n${peer.log}`);
  }

  /** What the router's index holds now. */
  get index(): readonly IndexRow[] {
    return (this.#lines.findLast(({ state }) => state === 'index')?.blocks ?? []) as IndexRow[];
  }

  /** Its size, where the router was told to say no more. */
  get indexCount(): number {
    return Number(this.#lines.findLast(({ state }) => state === 'index')?.blocks ?? 0);
  }

  /** What the router's index holds at the moment of asking; one question at a time. */
  async askIndex(): Promise<readonly IndexRow[]> {
    return (await this.#ask({ ask: 'index' })).blocks as readonly IndexRow[];
  }

  /** What the router makes of each prompt, a row a worker and rank. */
  async askScores(prompts: readonly Prompt[]): Promise<readonly OverlapScores[]> {
    return (await this.#ask({ ask: 'scores', prompts })).scores as readonly OverlapScores[];
  }

  /** Every state of the router's index so far, by its size. */
  get indexSizes(): number[] {
    const states = this.#lines.filter(({ state }) => state === 'index');
    return states.map(({ blocks }) => (blocks as unknown[]).length);
  }

  get log(): string {
    return this.#process.tail;
  }

  /** An orderly end: its records go. */
  stop(): Promise<void> {
    return this.#process.stop();
  }

  /** A crash: its records stay until they expire. */
  kill(): Promise<void> {
    return this.#process.kill();
  }

  async #ask(question: object): Promise<Line> {
    const answers = (): readonly Line[] => this.#lines.filter(({ state }) => state === 'answer');
    const before = answers().length;
    this.#process.writeLine(JSON.stringify(question));
    const isOver = (): boolean => answers().length > before || this.#process.hasEnded;
    await eventually(isOver, ANSWER_TIMEOUT_MS);
    const answer = answers()[before];
    if (answer === undefined) throw new Error(`the router does not answer:\n${this.log}`);
    return answer;
  }

  /** It does nothing until `thaw()`; what is sent to it waits. */
  freeze(): void {
    this.#process.send('SIGSTOP');
  }

  thaw(): void {
    this.#process.send('SIGCONT');
  }

  #take(line: string): void {
    // Dynamo's own log may go to standard output too.
    if (line.startsWith('{"state":')) this.#lines.push(parseLosslessJson(line) as Line);
    else this.#process.keep(`${line}\n`);
  }
}
