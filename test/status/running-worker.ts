/** A worker of several ranks on engines that this process plays, with its HTTP server. */
import { createLogger } from '../../src/log.ts';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { configOf } from '../support/worker-config.ts';

const MEDIA = ['GPU', 'GPU', 'CPU'];

export class RunningWorker {
  readonly worker: Worker;
  readonly #endpoints: readonly string[];
  readonly #engines: (EngineStub | null)[] = [];
  readonly #sequences: number[] = [];
  #nextHash = 1;
  #timer: NodeJS.Timeout | undefined;

  private constructor(worker: Worker, endpoints: readonly string[]) {
    this.worker = worker;
    this.#endpoints = endpoints;
  }

  /** Ranks 0 … rankCount − 1, each with an engine that is subscribed. */
  static async start(rankCount: number, ...flags: string[]): Promise<RunningWorker> {
    const base = await freePorts(rankCount);
    const ports = Array.from({ length: rankCount }, (_, rank) => base + rank);
    const endpoints = ports.map((port) => `tcp://127.0.0.1:${port}`);
    const enginesAt = ['--engine-endpoint', endpoints[0] ?? '', '--dp-size', String(rankCount)];
    const servesAt = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
    const config = configOf('--block-size', '4', ...enginesAt, ...servesAt, ...flags);
    const logger = createLogger({ level: 'silent', format: 'json' });
    const running = new RunningWorker(createWorker(config, { logger }), endpoints);
    for (const endpoint of endpoints) running.#engines.push(await EngineStub.start(endpoint));
    await running.worker.start();
    for (const engine of running.#engines) await engine?.subscribed();
    return running;
  }

  get url(): string {
    return this.worker.httpUrl ?? '';
  }

  async status(): Promise<StatusSnapshot> {
    return (await (await fetch(`${this.url}/api/status`)).json()) as StatusSnapshot;
  }

  /** At the address it had; its numbers go on once it is subscribed. */
  async restartEngine(rank: number): Promise<void> {
    const engine = await EngineStub.start(this.#endpoints[rank]);
    await engine.subscribed();
    this.#engines[rank] = engine;
  }

  killEngine(rank: number): void {
    this.#engines[rank]?.close();
    this.#engines[rank] = null;
  }

  async send(rank: number, events: readonly unknown[], skipped = 0): Promise<void> {
    const sequence = (this.#sequences[rank] ?? 0) + skipped;
    this.#sequences[rank] = sequence + 1;
    await this.#engines[rank]?.send(batchFrames(batch(events, rank), sequence));
  }

  /** One batch a rank each `everyMs`: stores on two tiers, some of a medium nobody knows, removes. */
  play(everyMs: number): void {
    this.#timer = setInterval(() => {
      for (const rank of this.#engines.keys()) void this.#sendNext(rank);
    }, everyMs);
  }

  pause(): void {
    clearInterval(this.#timer);
  }

  async stop(): Promise<void> {
    this.pause();
    await this.worker.stop();
    for (const engine of this.#engines) engine?.close();
  }

  async #sendNext(rank: number): Promise<void> {
    if (this.#engines[rank] === null) return;
    const events: unknown[] = MEDIA.map((medium) => storeEvent(this.#hashes(), null, { medium }));
    if (rank === 1) events.push(storeEvent(this.#hashes(), null, { medium: 'MOON' }));
    const sequence = this.#sequences[rank] ?? 0;
    if (sequence % 4 === 3) events.push(removeEvent([this.#nextHash - 2]));
    await this.send(rank, events);
  }

  #hashes(): number[] {
    return [this.#nextHash++, this.#nextHash++];
  }
}
