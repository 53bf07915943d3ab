/**
 * PublisherLink: one connection to a subscriber, from its first byte to its end.
 *
 * In       what the subscriber wants, and PINGs. All messages have one topic, so all that has to be known of its
 *          subscriptions is which beginnings of the topic they are.
 * Out      what its queue has, one write at a time: what comes meanwhile waits in the queue, and leaves together.
 * Ends     on a lost connection; where the handshake is not done in time; where the peer breaks the protocol, is no
 *          subscriber, or sends more than it may. Without heartbeats of its own: a subscriber that does not read answers none.
 * Bounds   a subscription by MAX_INPUT_BYTES; what it says by a budget that all links share.
 * Owns     its socket and timers.
 */
import type { Socket } from 'node:net';
import { FrameReader, type WireMessage } from './frame-reader.ts';
import {
  GREETING,
  GREETING_BYTES,
  type Interest,
  interestOfCommand,
  interestOfFrame,
  isReadyOf,
  PUBLISHER_READY,
  pongTo,
  readGreeting,
  SUBSCRIBERS,
} from './handshake.ts';
import type { InputBudget } from './input-budget.ts';
import type { SendQueue } from './send-queue.ts';

export interface PublisherLinkOptions {
  readonly socket: Socket;
  readonly topic: Buffer;
  readonly queue: SendQueue;
  readonly budget: InputBudget;
  /** The handshake is done. */
  readonly onReady: () => void;
  /** Whether it wants messages of the topic, whenever that changes. */
  readonly onInterest: (isWanted: boolean) => void;
  /** Once, and nothing behind it. */
  readonly onEnd: () => void;
}

const HANDSHAKE_MS = 30_000;
/** Of one write; what is on its way has to be held until all of it is through. */
const MAX_WRITE_BYTES = 1 << 20;
const MAX_INPUT_BYTES = 1 << 14;
const INPUT_SLAB_BYTES = 1 << 13;

export class PublisherLink {
  readonly #options: PublisherLinkOptions;
  readonly #reader = new FrameReader(MAX_INPUT_BYTES, INPUT_SLAB_BYTES);
  /** Lengths of the beginnings of the topic that it has subscribed to. */
  readonly #prefixes = new Set<number>();
  #state: 'greeting' | 'handshake' | 'ready' | 'finishing' | 'ended' = 'greeting';
  #isWriting = false;
  /** The answer to its last PING, while a write has to end before it. */
  #pong: Buffer | null = null;
  readonly #handshakeTimer: NodeJS.Timeout;

  constructor(options: PublisherLinkOptions) {
    this.#options = options;
    const { socket } = options;
    this.#handshakeTimer = setTimeout(() => this.#end(), HANDSHAKE_MS);
    socket.on('data', (bytes) => this.#offer(bytes));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
    socket.write(GREETING);
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  get isWanted(): boolean {
    return this.#prefixes.size > 0;
  }

  /** Writes what waits, unless the write before is still under way. */
  pump(): void {
    if (this.#isWriting || this.#state !== 'ready') return;
    const { socket, queue } = this.#options;
    const pieces: Buffer[] = this.#pong === null ? [] : [this.#pong];
    this.#pong = null;
    if (this.isWanted) {
      for (const parcel of queue.take(MAX_WRITE_BYTES)) pieces.push(...parcel.pieces);
    }
    const last = pieces.pop();
    if (last === undefined) return;
    this.#isWriting = true;
    socket.cork();
    for (const piece of pieces) socket.write(piece);
    socket.write(last, (error) => {
      // Behind its end the queue is somebody else's.
      if (error || this.#state === 'ended') return;
      this.#isWriting = false;
      queue.confirm();
      this.pump();
    });
    socket.uncork();
  }

  /** Sends what it was given, then says goodbye; resolves once the peer has done the same. */
  async finish(): Promise<void> {
    const { socket } = this.#options;
    clearTimeout(this.#handshakeTimer);
    this.#state = 'finishing';
    if (socket.destroyed) return;
    const closed = new Promise((resolve) => {
      socket.once('close', resolve);
    });
    socket.end();
    // What it still says has to be read, or the goodbye is a reset, which takes with it what the peer has not read.
    socket.resume();
    await closed;
  }

  /** Without a word to onEnd. */
  close(): void {
    this.#state = 'ended';
    clearTimeout(this.#handshakeTimer);
    this.#options.socket.destroy();
  }

  get #isOver(): boolean {
    return this.#state === 'finishing' || this.#state === 'ended';
  }

  #end(): void {
    if (this.#isOver) return;
    this.close();
    this.#options.onEnd();
  }

  #offer(bytes: Buffer): void {
    const { socket, budget } = this.#options;
    const goOn = (): void => {
      if (this.#isOver) return;
      this.#take(bytes);
      socket.resume();
    };
    if (budget.take(bytes.length, goOn)) this.#take(bytes);
    else socket.pause();
  }

  #take(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && !this.#isOver; ) {
      const byteCount = bytes.copy(this.#reader.room(), 0, at);
      this.#reader.add(byteCount);
      at += byteCount;
      if (this.#state === 'greeting') this.#greet();
      else this.#read();
    }
  }

  #greet(): void {
    const minor = readGreeting(this.#reader.unread);
    if (minor === 'partial') return;
    if (minor === 'breach') {
      this.#end();
      return;
    }
    this.#reader.skip(GREETING_BYTES);
    this.#state = 'handshake';
    this.#options.socket.write(PUBLISHER_READY);
    this.#read();
  }

  #read(): void {
    const reader = this.#reader;
    while (!this.#isOver) {
      const progress = reader.next();
      if (progress === 'partial') return;
      if (progress === 'command') this.#obey(reader.command);
      else if (progress === 'message' && this.#state === 'ready') {
        if (reader.message !== null) this.#hear(reader.message);
      } else this.#end();
    }
  }

  #obey(command: Buffer): void {
    if (this.#state === 'handshake') {
      if (isReadyOf(command, SUBSCRIBERS)) this.#start();
      else this.#end();
      return;
    }
    const interest = interestOfCommand(command);
    if (interest !== null) {
      this.#note(interest);
      return;
    }
    const pong = pongTo(command);
    if (pong === null) return;
    // Of many that come while a write is under way one is answered: a peer that never reads would have us keep all.
    this.#pong = pong;
    this.pump();
  }

  /** Subscriptions of peers of 3.0; what else an XSUB says is nothing to us. */
  #hear({ slab, frameCount, firstAt, firstLength }: WireMessage): void {
    if (frameCount !== 1) return;
    const interest = interestOfFrame(slab.bytes.subarray(firstAt, firstAt + firstLength));
    if (interest !== null) this.#note(interest);
  }

  #start(): void {
    clearTimeout(this.#handshakeTimer);
    this.#state = 'ready';
    this.#options.onReady();
  }

  #note({ isWanted, prefix }: Interest): void {
    const { topic, onInterest } = this.#options;
    const wasWanted = this.isWanted;
    if (prefix.length > topic.length) return;
    if (prefix.compare(topic, 0, prefix.length) !== 0) return;
    if (isWanted) this.#prefixes.add(prefix.length);
    else this.#prefixes.delete(prefix.length);
    if (this.isWanted !== wasWanted) onInterest(this.isWanted);
  }
}
