/** The request port of an LMCache server for tests: answers subscriptions with the batches that it is given. */
import { unpack } from 'msgpackr';
import { onTestFinished } from 'vitest';
import { Router } from 'zeromq';
import { type BatchFields, batchPayload } from './lmcache-stream.ts';
import { eventually } from './plane-collector.ts';

export class LmcacheStreamStub {
  readonly #socket = new Router({ linger: 0, sendTimeout: 1000 });
  /** Instance id, model, cursor and page of each subscription. */
  readonly requests: (readonly unknown[])[] = [];
  acks = 0;
  #route: readonly Buffer[] = [];
  #cursor = 0;

  static async start(endpoint = 'tcp://127.0.0.1:0'): Promise<LmcacheStreamStub> {
    const stub = new LmcacheStreamStub();
    await stub.#socket.bind(endpoint);
    onTestFinished(() => stub.close());
    void stub.#read();
    return stub;
  }

  get endpoint(): string {
    return this.#socket.lastEndpoint ?? '';
  }

  async subscribed(): Promise<void> {
    if (!(await eventually(() => this.requests.length > 0))) throw new Error('nobody subscribes');
  }

  /** One batch of these records to the subscription that came last. */
  async send(events: readonly object[], fields: BatchFields = {}): Promise<void> {
    this.#cursor += events.length;
    const payload = batchPayload({ events, next_cursor: this.#cursor, ...fields });
    await this.#socket.send([...this.#route, payload]);
  }

  close(): void {
    if (!this.#socket.closed) this.#socket.close();
  }

  async #read(): Promise<void> {
    for await (const [peer, uid, operation, ...rest] of this.#socket) {
      if (peer === undefined || uid === undefined || operation === undefined) return;
      if (operation.length === 0) {
        if (String(rest[0]) === 'ack') this.acks++;
      } else if (rest.length === 4) {
        this.#route = [peer, uid, operation];
        this.requests.push(rest.map((frame) => unpack(frame) as unknown));
      }
    }
  }
}
