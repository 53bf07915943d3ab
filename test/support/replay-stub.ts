/**
 * An engine's replay socket: a ROUTER that answers exactly [identity, empty, 8 bytes], and nothing else,
 * with the batches it keeps and an end marker.
 */
import { onTestFinished } from 'vitest';
import { Router } from 'zeromq';

export interface ReplayStubOptions {
  /** `new`: with a topic frame. */
  readonly form?: 'old' | 'new';
  /** Before each answer. */
  readonly delayMs?: number;
}

const EMPTY = Buffer.alloc(0);
const END_MARKER = Buffer.alloc(8, 0xff);

export class ReplayStub {
  /** First number of each request, in the order of arrival. */
  readonly requests: number[] = [];
  /**
   * Batches for which an engine's send path has room. Of a longer answer they leave, then as many are lost,
   * then some leave again; the rest is lost, the end marker with it.
   */
  maxBatches: number = Number.POSITIVE_INFINITY;
  delayMs: number;
  /** Answers begin with this number, whatever was asked. */
  answersFrom: number | null = null;
  /** Sent before the next answer. */
  rubbish: readonly Buffer[][] = [];
  readonly #form: 'old' | 'new';
  readonly #kept = new Map<bigint, Buffer[]>();
  readonly #router = new Router({ linger: 0, sendHighWaterMark: 0 });

  private constructor({ form = 'new', delayMs = 0 }: ReplayStubOptions) {
    this.#form = form;
    this.delayMs = delayMs;
  }

  static async start(endpoint: string, options: ReplayStubOptions = {}): Promise<ReplayStub> {
    const stub = new ReplayStub(options);
    onTestFinished(() => stub.close());
    await stub.#open(endpoint);
    return stub;
  }

  /** Messages as they go out live; they need not. */
  keep(...messages: readonly Buffer[][]): void {
    for (const frames of messages) this.#kept.set(frames[1]?.readBigUInt64BE() ?? 0n, frames);
  }

  forget(): void {
    this.#kept.clear();
  }

  close(): void {
    this.#router.close();
  }

  async #open(endpoint: string): Promise<void> {
    await this.#router.bind(endpoint);
    void this.#serve();
  }

  async #serve(): Promise<void> {
    const router = this.#router;
    for await (const [identity, delimiter, start, ...more] of router) {
      if (identity === undefined || delimiter?.length !== 0 || more.length > 0) continue;
      if (start?.length !== 8) continue;
      this.requests.push(Number(start.readBigUInt64BE()));
      const first = this.answersFrom ?? start.readBigUInt64BE();
      const rubbish = this.rubbish.map((frames) => [identity, ...frames]);
      this.rubbish = [];
      const answer = [...rubbish, ...this.#answer(identity, BigInt(first))];
      setTimeout(() => void send(router, answer), this.delayMs);
    }
  }

  #answer(identity: Buffer, start: bigint): Buffer[][] {
    const numbers = [...this.#kept.keys()].filter((number) => number >= start);
    numbers.sort((a, b) => (a < b ? -1 : 1));
    const room = this.maxBatches;
    const sent = [...numbers.slice(0, room), ...numbers.slice(2 * room, 2.5 * room)];
    const batches = sent.map((number) => {
      const [topic = EMPTY, sequence = EMPTY, payload = EMPTY] = this.#kept.get(number) ?? [];
      return [identity, EMPTY, ...(this.#form === 'new' ? [topic] : []), sequence, payload];
    });
    if (batches.length < numbers.length) return batches;
    const end = [identity, EMPTY, ...(this.#form === 'new' ? [EMPTY] : []), END_MARKER, EMPTY];
    return [...batches, end];
  }
}

async function send(router: Router, answer: readonly Buffer[][]): Promise<void> {
  for (const frames of answer) {
    try {
      await router.send(frames);
    } catch {
      // The asker has left, or the test is over and the socket closed: nobody waits for the rest.
      return;
    }
  }
}
