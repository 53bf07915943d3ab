/**
 * The rig of the trials with sockets: stub engines, a worker with id 7 and block size 4 in `safe`, and a
 * subscriber at every plane address that the worker's status names. All of it goes with the test.
 */
import { expect, onTestFinished } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { RankStatus } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { parseExposition, type Sample } from '../metrics/exposition.ts';
import { EngineStub } from './engine-stub.ts';
import { freePorts } from './free-ports.ts';
import { eventually, ZmqCollector } from './plane-collector.ts';
import { eventsOf, type PublishedEvent, shown } from './published-events.ts';
import { ReplayStub, type ReplayStubOptions } from './replay-stub.ts';
import { BLOCK_SIZE, f, WORKER_ID } from './trials.ts';
import { configOf } from './worker-config.ts';

export interface SocketTrialOptions {
  /** Ranks of the worker, 1 if absent. */
  readonly ranks?: number;
  /** Stub engines that are up, the first on the first rank's port; one a rank if absent. */
  readonly engines?: number;
  /** Host in the address that the worker is given; engines bind the loopback of its family. */
  readonly host?: string;
  readonly flags?: readonly string[];
  /** Replay sockets, one a rank, on the ports behind those of the engines. */
  readonly replays?: ReplayStubOptions;
}

export class SocketTrial {
  readonly worker: Worker;
  /** Log lines so far, each parsed. */
  readonly logs: Record<string, unknown>[] = [];
  /** Port of the first rank's engine. */
  readonly port: number;
  /** One a rank, where there are any. */
  readonly replays: ReplayStub[] = [];
  #nextSequence = 0;
  readonly #ranks: number;
  readonly #engineHost: string;
  readonly #engines: EngineStub[] = [];
  readonly #routers: ZmqCollector[] = [];

  /** Resolves when every engine has its subscriber and every plane its router. */
  static async start(options: SocketTrialOptions = {}): Promise<SocketTrial> {
    const { ranks = 1, engines = ranks, replays } = options;
    const trial = new SocketTrial(await freePorts(2 * ranks), ranks, options);
    for (let offset = 0; replays !== undefined && offset < ranks; offset++) {
      trial.replays.push(await ReplayStub.start(trial.#replayEndpoint(offset), replays));
    }
    for (let offset = 0; offset < engines; offset++) await trial.startEngine(offset);
    await trial.worker.start();
    for (const { plane_endpoint } of trial.worker.status().ranks) {
      const router = new ZmqCollector(plane_endpoint ?? '');
      onTestFinished(() => router.close());
      trial.#routers.push(router);
      await router.subscribed();
    }
    for (const engine of trial.#engines) await engine.subscribed();
    await eventually(() => trial.#connectedEngines() >= engines);
    return trial;
  }

  private constructor(port: number, ranks: number, options: SocketTrialOptions) {
    const { host = '127.0.0.1', flags = [] } = options;
    this.port = port;
    this.#ranks = ranks;
    this.#engineHost = host === '[::]' ? '[::1]' : '127.0.0.1';
    const given: Readonly<Record<string, string>> = {
      '--engine-endpoint': `tcp://${host}:${port}`,
      '--plane-endpoint': 'tcp://127.0.0.1:0',
      '--http': '127.0.0.1:0',
      '--worker-id': String(WORKER_ID),
      '--block-size': String(BLOCK_SIZE),
      '--dp-size': String(ranks),
      ...(options.replays !== undefined && { '--replay-endpoint': this.#replayEndpoint(0) }),
    };
    const rig = Object.entries(given).filter(([flag]) => !flags.includes(flag));
    const config = configOf(...rig.flat(), ...flags);
    const out = { write: (line: string) => void this.logs.push(JSON.parse(line)) };
    const logger = createLogger({ level: 'info', format: 'json', out });
    this.worker = createWorker(config, { logger });
    onTestFinished(() => this.worker.stop());
  }

  /** Puts a stub engine on the port of the rank `offset` behind the first. */
  async startEngine(offset = 0): Promise<void> {
    const endpoint = `tcp://${this.#engineHost}:${this.port + offset}`;
    const engine = await EngineStub.start(endpoint, { ipv6: this.#engineHost.startsWith('[') });
    onTestFinished(() => engine.close());
    this.#engines[offset] = engine;
  }

  /** Takes the stub engine of a rank away; its port is free when this resolves. */
  async stopEngine(offset = 0): Promise<void> {
    this.#engines[offset]?.close();
    await this.until(() => !this.rank(offset).engine.connected);
  }

  /** Another engine on the same port; resolves when the relay is connected to it. */
  async restartEngine(offset = 0): Promise<void> {
    await this.stopEngine(offset);
    await this.startEngine(offset);
    await this.#engines[offset]?.subscribed();
    await this.until(() => this.rank(offset).engine.connected);
  }

  /** The replay socket of the first rank. */
  get replay(): ReplayStub {
    const [first] = this.replays;
    if (first === undefined) throw new Error('a trial without replays');
    return first;
  }

  #replayEndpoint(offset: number): string {
    return `tcp://127.0.0.1:${this.port + this.#ranks + offset}`;
  }

  async send(frames: readonly Uint8Array[], engine = 0): Promise<void> {
    await this.#engines[engine]?.subscribed();
    await this.#engines[engine]?.send(frames);
  }

  /** One batch of the first engine, under its next number. */
  async sendEvents(...events: unknown[]): Promise<void> {
    await this.send(f(this.#nextSequence++, events));
  }

  /** As `output`, and fails where there is more. */
  async wholeOutput(count: number): Promise<string[]> {
    const output = await this.output(count);
    expect(output).toHaveLength(count);
    return output;
  }

  /** What the router of a rank has got, once that is `count` events at least. */
  async output(count: number, offset = 0): Promise<string[]> {
    await eventually(() => this.#received(offset).length >= count);
    return this.#received(offset);
  }

  /** The event lists that the router of a rank has got, as bytes in hex. */
  payloads(offset = 0): string[] {
    const published = this.#routers[offset]?.published ?? [];
    return published.map(({ payload }) => payload.toString('hex'));
  }

  /** Fails where `condition` does not come to hold. */
  async until(condition: () => boolean, timeoutMs = 10_000): Promise<void> {
    if (!(await eventually(condition, timeoutMs)))
      throw new Error(`still not so: ${String(condition)}`);
  }

  rank(offset = 0): RankStatus {
    const rank = this.worker.status().ranks[offset];
    if (rank === undefined) throw new Error(`no rank ${offset} behind the first`);
    return rank;
  }

  get warnings(): Record<string, unknown>[] {
    return this.logs.filter(({ level }) => level === 'warn');
  }

  /** An answer of the status server. */
  async get(path: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.worker.httpUrl}${path}`);
    return { status: response.status, text: await response.text() };
  }

  /** Values of the series of that name which have these labels, in the order of the exposition. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number[]> {
    const { text } = await this.get('/metrics');
    const wanted = Object.entries(labels);
    const matches = (sample: Sample): boolean =>
      sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value);
    return parseExposition(text)
      .filter(matches)
      .map(({ value }) => value);
  }

  /** As output() shows it so far, with everything that the events hold. */
  events(offset = 0): PublishedEvent[] {
    const published = this.#routers[offset]?.published ?? [];
    return published.flatMap(({ payload }) => eventsOf(payload));
  }

  #received(offset: number): string[] {
    return this.events(offset).map(shown);
  }

  #connectedEngines(): number {
    const { ranks } = this.worker.status();
    return new Set(
      ranks.filter(({ engine }) => engine.connected).map(({ engine }) => engine.endpoint),
    ).size;
  }
}
