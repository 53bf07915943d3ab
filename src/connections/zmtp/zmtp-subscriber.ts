/**
 * ZmtpSubscriber: the messages of one publisher, over as many links as it takes.
 *
 * Out      messages and changes of the link, in the order in which they came: what a lost link has brought is passed
 *          on before its loss is told. A message that a link brought in part is dropped with it.
 * Turns    at most TURN_MESSAGES messages or TURN_MS, then timers and other sockets have theirs. Reading goes on
 *          meanwhile: what has come waits.
 * Bounds   what waits: receiveHwm messages, and MAX_WAITING_BYTES. Beyond, the publisher has to wait.
 * Links    for ever: behind a lost one after 100 ms, twice as long each time, to 5 s; behind a peer that breaks
 *          the protocol after 1 s at least.
 */
import type { NetConnectOpts } from 'node:net';
import { ReaderTurn, settled, TURN_MESSAGES } from '../turns.ts';
import type { WireMessage } from './frame-reader.ts';
import type { ReadSlab } from './read-slab.ts';
import { RetryDelay } from './retry-delay.ts';
import { type LinkTimes, ZmtpLink } from './zmtp-link.ts';

export interface SubscriberOptions {
  readonly address: NetConnectOpts;
  readonly topic: string;
  readonly receiveHwm: number;
  readonly maxMessageBytes: number;
  readonly times?: LinkTimes;
  /**
   * `nowMs`: on the monotonic clock. True where the message is looked at once more: its bytes then last until that is said
   * of another one. Must not throw.
   */
  readonly onMessage: (message: WireMessage, nowMs: number) => boolean;
  readonly onLink: (isLinked: boolean) => void;
}

const TIMES: LinkTimes = {
  handshakeMs: 30_000,
  heartbeatIntervalMs: 5000,
  heartbeatTimeoutMs: 8000,
};
const BREACH_RETRY_MS = 1000;
const MAX_WAITING_BYTES = 16 << 20;

type Waiting = WireMessage | 'linked' | 'unlinked';

export class ZmtpSubscriber {
  readonly #options: SubscriberOptions;
  readonly #topic: Buffer;
  #link: ZmtpLink | null = null;
  readonly #retryDelay = new RetryDelay();
  #retryTimer: NodeJS.Timeout | undefined;
  /** Those before the head have been passed on, and are let go. */
  #waiting: (Waiting | undefined)[] = [];
  #head = 0;
  #waitingBytes = 0;
  /** Where the message lies that may be looked at once more. */
  #lastSlab: ReadSlab | null = null;
  readonly #turn = new ReaderTurn(() => this.#goOn());
  #turnMessages = 0;
  /** When the message at hand is passed on. */
  #nowMs = 0;
  #isClosed = false;
  isLinked = false;
  /** Messages passed on so far. */
  messageCount = 0;
  /** Handshakes that have been told. */
  links = 0;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#topic = Buffer.from(options.topic);
  }

  start(): void {
    const { address, maxMessageBytes, times = TIMES } = this.#options;
    this.#link = new ZmtpLink({
      address,
      topic: this.#topic,
      maxMessageBytes,
      times,
      canTake: () => this.#hasRoom(1),
      onReady: () => {
        this.#retryDelay.reset();
        this.#offer('linked');
      },
      onMessage: (message) => this.#offer(message),
      onEnd: (cause) => this.#relink(cause),
    });
  }

  /** What has begun to arrive is waited for as well. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0 || this.#link?.isAmidMessage === true;
  }

  /** Passes on what has already arrived, for at most `maxMs`. */
  async drain(maxMs: number): Promise<void> {
    await settled(this, maxMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    this.#link?.close();
    this.#waiting = [];
  }

  #relink(cause: 'lost' | 'breach'): void {
    this.#offer('unlinked');
    if (this.#isClosed) return;
    const delayMs = this.#retryDelay.take(cause === 'breach' ? BREACH_RETRY_MS : 0);
    this.#retryTimer = setTimeout(() => this.start(), delayMs);
  }

  #hasRoom(part: number): boolean {
    return (
      this.#waiting.length - this.#head < this.#options.receiveHwm * part &&
      this.#waitingBytes < MAX_WAITING_BYTES * part
    );
  }

  #offer(next: Waiting): void {
    if (this.#waiting.length === 0) {
      if (!this.#turn.isRunning) this.#beginTurn();
      if (this.#isTurnYoung()) {
        this.#passOn(next);
        return;
      }
    }
    this.#waiting.push(next);
    if (typeof next !== 'object') return;
    this.#waitingBytes += next.wireBytes;
    next.slab.hold();
  }

  #isTurnYoung(): boolean {
    this.#nowMs = performance.now();
    return this.#turnMessages < TURN_MESSAGES && !this.#turn.isOver(this.#nowMs);
  }

  #beginTurn(): void {
    this.#turnMessages = 0;
    this.#turn.begin();
  }

  /** In the next turn, with what waits. */
  #goOn(): void {
    if (this.#waiting.length === 0) return;
    this.#beginTurn();
    while (this.#head < this.#waiting.length && this.#isTurnYoung()) {
      const next = this.#waiting[this.#head];
      this.#waiting[this.#head++] = undefined;
      if (next !== undefined) this.#passOn(next);
      if (typeof next === 'object') {
        this.#waitingBytes -= next.wireBytes;
        next.slab.letGo();
      }
      if (this.#isClosed) return;
    }
    if (this.#head * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    if (this.#hasRoom(0.5)) this.#link?.resume();
  }

  #holdLast(slab: ReadSlab): void {
    if (slab === this.#lastSlab) return;
    slab.hold();
    this.#lastSlab?.letGo();
    this.#lastSlab = slab;
  }

  #passOn(next: Waiting): void {
    if (typeof next === 'object') {
      this.#turnMessages++;
      this.messageCount++;
      if (this.#options.onMessage(next, this.#nowMs)) this.#holdLast(next.slab);
      return;
    }
    const isLinked = next === 'linked';
    if (isLinked === this.isLinked) return;
    this.isLinked = isLinked;
    if (isLinked) this.links++;
    this.#options.onLink(isLinked);
  }
}
