/**
 * PlayedEngine: one life of an engine's publisher, as vLLM's and SGLang's are.
 *
 * live     [0] topic   [1] sequence, u64 BE, from the first number on   [2] payload
 * request  from a DEALER: empty, start (bytes of any length, big-endian; none: 0)
 * answer   per kept batch from `start` on: empty, topic (`new` form only), sequence, payload
 *          then the end marker: empty, empty topic (`new` only), ff × 8, empty payload
 *
 * Keeps    the last `bufferSteps` batches for replays, those too that were never sent live.
 * Silent   to requests of another shape, and to nobody: an XPUB with no subscriber sends nothing.
 */
import { existsSync, rmSync } from 'node:fs';
import { Router, XPublisher } from 'zeromq';
import { errorCode, KvRelayError } from '../errors.ts';

export type ReplayForm = 'old' | 'new';

export interface PlayedEngineOptions {
  readonly endpoint: string;
  readonly direction: 'bind' | 'connect';
  /** Null: no replays, and nothing is kept for them. */
  readonly replayEndpoint: string | null;
  readonly bufferSteps: number;
  readonly replayForm: ReplayForm;
  readonly firstSequence: bigint;
}

export interface EngineAddresses {
  readonly endpoint: string;
  readonly replayEndpoint: string | null;
}

/** The played engine cannot have one of its addresses. */
export class PlayEndpointError extends KvRelayError {
  readonly code = 'KVR_PLAY_ENDPOINT';

  constructor(endpoint: string, cause: unknown) {
    super(`Cannot publish on ${endpoint}: ${errorCode(cause)}`, {
      cause,
      remedy: 'Give a free address of this host; port 0 takes a free one',
    });
  }
}

const SUBSCRIBE = 1;
const SEND_HWM = 100_000;
/** A publisher waits that long for its queue when it is shut down. */
export const LINGER_MS: number = 1000;
const END_MARKER = Buffer.alloc(8, 0xff);
const EMPTY = Buffer.alloc(0);
/** Longer ones are no number of a batch. */
const MAX_REQUEST_BYTES = 1024;
/** After a restart the port may still be in the hands of the life before. */
const BIND_TRIES = 40;
const BIND_RETRY_MS = 50;
/** What is on its way in a closed socket keeps its file. */
const FILE_GONE_MS = LINGER_MS + 500;
const FILE_POLL_MS = 10;

interface KeptBatch {
  readonly sequence: bigint;
  /** Topic, sequence, payload. */
  readonly frames: readonly [Buffer, Buffer, Buffer];
}

export class PlayedEngine {
  readonly #options: PlayedEngineOptions;
  readonly #publisher: XPublisher;
  readonly #router: Router | null;
  #kept: KeptBatch[] = [];
  #sequence: bigint;
  #subscriptions = 0;
  #onSubscribed: () => void = () => undefined;

  constructor(options: PlayedEngineOptions) {
    this.#options = options;
    this.#sequence = options.firstSequence;
    const { endpoint, replayEndpoint, bufferSteps } = options;
    this.#publisher = new XPublisher({ ...common(endpoint), sendHighWaterMark: SEND_HWM });
    // Room for one whole answer, as in vLLM 0.33: the engines before it lost the rest.
    const sendHighWaterMark = 2 * (bufferSteps + 1);
    this.#router =
      replayEndpoint === null
        ? null
        : new Router({
            ...common(replayEndpoint),
            sendHighWaterMark,
            maxMessageSize: MAX_REQUEST_BYTES,
          });
  }

  /** The addresses with the ports that were taken. Rejects with PlayEndpointError. */
  async open(): Promise<EngineAddresses> {
    const { endpoint, direction, replayEndpoint } = this.#options;
    if (direction === 'connect') this.#publisher.connect(endpoint);
    else await bind(this.#publisher, endpoint);
    if (this.#router !== null) await bind(this.#router, replayEndpoint ?? '');
    void this.#followSubscriptions();
    void this.#answerRequests();
    return {
      endpoint: this.#publisher.lastEndpoint ?? endpoint,
      replayEndpoint: this.#router?.lastEndpoint ?? null,
    };
  }

  get hasSubscriber(): boolean {
    return this.#subscriptions > 0;
  }

  /** Resolves when somebody is subscribed. */
  async subscribed(): Promise<void> {
    if (this.hasSubscriber) return;
    await new Promise<void>((resolve) => {
      this.#onSubscribed = resolve;
    });
  }

  /** Gives the batch its number and keeps it for replays; `send` what is returned. */
  number(topic: Uint8Array, payload: Uint8Array): Buffer[] {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(this.#sequence);
    const frames: KeptBatch['frames'] = [Buffer.from(topic), number, Buffer.from(payload)];
    if (this.#router !== null) this.#keep({ sequence: this.#sequence, frames });
    this.#sequence++;
    return [...frames];
  }

  async send(frames: Buffer[]): Promise<void> {
    await this.#publisher.send(frames);
  }

  /**
   * Closes the sockets. What is on its way still leaves for LINGER_MS, which a process has to live
   * on for. A port is not unbound before: that would cut the links at once.
   */
  async close(): Promise<void> {
    for (const socket of [this.#publisher, this.#router]) {
      const endpoint = socket?.lastEndpoint;
      socket?.close();
      if (endpoint?.startsWith('ipc://')) await untilGone(endpoint.slice('ipc://'.length));
    }
    this.#kept = [];
  }

  /** Cut in large steps: taking the first out of an array moves all others. */
  #keep(batch: KeptBatch): void {
    const { bufferSteps } = this.#options;
    this.#kept.push(batch);
    if (this.#kept.length >= 2 * bufferSteps + 1) this.#kept = this.#inReach();
  }

  #inReach(): KeptBatch[] {
    const { bufferSteps } = this.#options;
    return this.#kept.slice(Math.max(0, this.#kept.length - bufferSteps));
  }

  async #followSubscriptions(): Promise<void> {
    for await (const [change] of this.#publisher) {
      this.#subscriptions += change?.[0] === SUBSCRIBE ? 1 : -1;
      if (this.hasSubscriber) this.#onSubscribed();
    }
  }

  async #answerRequests(): Promise<void> {
    if (this.#router === null) return;
    for await (const [identity, , start, ...more] of this.#router) {
      if (identity === undefined || start === undefined || more.length > 0) continue;
      // The socket may be closed under an answer.
      await this.#answer(this.#router, identity, start).catch(() => undefined);
    }
  }

  async #answer(router: Router, identity: Buffer, start: Buffer): Promise<void> {
    const isNew = this.#options.replayForm === 'new';
    const first = BigInt(`0x0${start.toString('hex')}`);
    for (const { sequence, frames } of this.#inReach()) {
      if (sequence < first) continue;
      const [topic, number, payload] = frames;
      await router.send([identity, EMPTY, ...(isNew ? [topic] : []), number, payload]);
    }
    await router.send([identity, EMPTY, ...(isNew ? [EMPTY] : []), END_MARKER, EMPTY]);
  }
}

/**
 * libzmq removes the file of a closed socket in its own time, then perhaps that of the life behind this
 * one. Not unbound instead: that works on another thread, and can abort the process.
 */
async function untilGone(path: string): Promise<void> {
  const deadlineMs = performance.now() + FILE_GONE_MS;
  while (existsSync(path) && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, FILE_POLL_MS));
  }
  rmSync(path, { force: true });
}

function common(endpoint: string): { linger: number; ipv6: boolean } {
  return { linger: LINGER_MS, ipv6: endpoint.startsWith('tcp://[') };
}

async function bind(socket: XPublisher | Router, endpoint: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await socket.bind(endpoint);
      return;
    } catch (error) {
      const mayPass = errorCode(error) === 'EADDRINUSE' && tries < BIND_TRIES;
      if (!mayPass) throw new PlayEndpointError(endpoint, error);
      await new Promise((resolve) => setTimeout(resolve, BIND_RETRY_MS));
    }
  }
}
