/** An engine that stores, and removes what it stored first, for as long as it is told to. */
import { onTestFinished } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { pause } from './router-trial.ts';

export class BusyEngine {
  readonly stub: EngineStub;
  #sequence = 0;
  #stored = 0;
  #removed = 0;
  #isBusy = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(stub: EngineStub) {
    this.stub = stub;
  }

  static async start(): Promise<BusyEngine> {
    const stub = await EngineStub.start();
    const engine = new BusyEngine(stub);
    onTestFinished(async () => {
      await engine.end();
      stub.close();
    });
    return engine;
  }

  /** Stores `blockCount` blocks, in chains; these stay. */
  async fill(blockCount: number): Promise<void> {
    while (this.#stored < blockCount) await this.#send([this.#chain(500)]);
    this.#removed = this.#stored;
  }

  /** A message of `events` each 5 ms: one removal for four stores of a block each. */
  begin(events: number): void {
    this.#isBusy = true;
    this.#running = this.#run(events);
  }

  async end(): Promise<void> {
    this.#isBusy = false;
    await this.#running;
  }

  async #run(events: number): Promise<void> {
    const startMs = performance.now();
    let sent = 0;
    while (this.#isBusy) {
      const all = Array.from({ length: events }, (_, at) =>
        (sent * events + at) % 5 === 4 ? removeEvent([++this.#removed]) : this.#chain(1),
      );
      await this.#send(all);
      sent++;
      await pause(Math.max(0, startMs + sent * 5 - performance.now()));
    }
  }

  #chain(blockCount: number): unknown {
    const hashes = tokensFrom(this.#stored + 1, blockCount);
    const tokens = tokensFrom(this.#stored * 4, blockCount * 4);
    this.#stored += blockCount;
    return storeEvent(hashes, null, { token_ids: tokens });
  }

  async #send(events: readonly unknown[]): Promise<void> {
    await this.stub.send(batchFrames(batch(events), this.#sequence++));
  }
}
