/**
 * ZmtpLink: one connection of a subscriber to a publisher, from connect to its end.
 *
 * Out      onReady once the handshake is done, messages of the topic, onEnd once, and nothing behind it.
 * Reads    while canTake() allows it, else the peer has to wait; resume() goes on where it stopped. For TURN_MS a turn
 *          of the event loop: libuv would read on 31 times, be it commands that nobody sees.
 * Ends     on a lost connection; where the handshake is not done in time; where nothing comes behind a PING; and as
 *          `breach` where the peer breaks the protocol, is no publisher, or sends more than it may.
 * Owns     its socket and timers.
 */
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { ReaderTurn } from '../turns.ts';
import { FrameReader, type WireMessage } from './frame-reader.ts';
import {
  GREETING,
  GREETING_BYTES,
  isReadyOf,
  PING,
  PUBLISHERS,
  pongTo,
  readGreeting,
  SUBSCRIBER_READY,
  subscription,
} from './handshake.ts';

export interface LinkTimes {
  readonly handshakeMs: number;
  readonly heartbeatIntervalMs: number;
  readonly heartbeatTimeoutMs: number;
}

export interface LinkOptions {
  readonly address: NetConnectOpts;
  readonly topic: Buffer;
  readonly maxMessageBytes: number;
  readonly times: LinkTimes;
  readonly canTake: () => boolean;
  readonly onReady: () => void;
  readonly onMessage: (message: WireMessage) => void;
  readonly onEnd: (cause: 'lost' | 'breach') => void;
}

/** Answers that a peer leaves unread: one that asks on and on and never reads is no publisher. */
const MAX_UNSENT_BYTES = 1 << 16;

export class ZmtpLink {
  readonly #options: LinkOptions;
  readonly #reader: FrameReader;
  readonly #socket: Socket;
  #state: 'greeting' | 'handshake' | 'ready' | 'ended' = 'greeting';
  #peerMinor = 0;
  #isPaused = false;
  readonly #turn = new ReaderTurn();
  /** Its turn is over, the next one goes on. */
  #isResting = false;
  #roomBytes = 0;
  #handshakeTimer: NodeJS.Timeout | undefined;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#reader = new FrameReader(options.maxMessageBytes);
    this.#handshakeTimer = setTimeout(() => this.#end('lost'), options.times.handshakeMs);
    this.#socket = connect({
      ...options.address,
      // Else the subscription waits until the peer has acknowledged what went before it: 40 ms on Linux.
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: options.times.heartbeatTimeoutMs,
      onread: {
        buffer: () => this.#room(),
        callback: (byteCount) => {
          const isFull = byteCount === this.#roomBytes;
          if (!this.#turn.isRunning) this.#turn.begin();
          this.#take(byteCount);
          if (isFull && this.#turn.isOver(performance.now())) this.#rest();
          return true;
        },
      },
    });
    this.#socket.on('connect', () => this.#socket.write(GREETING));
    this.#socket.on('error', () => this.#end('lost'));
    this.#socket.on('close', () => this.#end('lost'));
  }

  /** To be called when canTake() allows more than it did. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#read();
    this.#goOn();
  }

  /** A message has begun to arrive. */
  get isAmidMessage(): boolean {
    return this.#state === 'ready' && this.#reader.isPartial;
  }

  /** Without a word to onEnd. */
  close(): void {
    this.#state = 'ended';
    clearTimeout(this.#handshakeTimer);
    clearInterval(this.#heartbeatTimer);
    clearTimeout(this.#silenceTimer);
    this.#socket.destroy();
  }

  #end(cause: 'lost' | 'breach'): void {
    if (this.#state === 'ended') return;
    this.close();
    this.#options.onEnd(cause);
  }

  #take(byteCount: number): void {
    if (this.#state === 'ended') return;
    this.#reader.add(byteCount);
    if (this.#silenceTimer !== undefined) this.#endSilence();
    if (this.#state === 'greeting') this.#greet();
    else this.#read();
  }

  #greet(): void {
    const minor = readGreeting(this.#reader.unread);
    if (minor === 'partial') return;
    if (minor === 'breach') {
      this.#end('breach');
      return;
    }
    this.#reader.skip(GREETING_BYTES);
    this.#peerMinor = minor;
    this.#state = 'handshake';
    this.#socket.write(SUBSCRIBER_READY);
    this.#read();
  }

  #read(): void {
    const { canTake, onMessage, topic } = this.#options;
    const reader = this.#reader;
    while (this.#state !== 'ended') {
      if (!canTake()) {
        this.#pause();
        return;
      }
      const progress = reader.next();
      if (progress === 'message' && this.#state === 'ready') {
        const { message } = reader;
        if (message !== null && (topic.length === 0 || hasTopic(message, topic)))
          onMessage(message);
      } else if (progress === 'command') {
        this.#obey(reader.command);
      } else if (progress === 'partial') {
        return;
      } else {
        this.#end('breach');
      }
    }
  }

  #obey(command: Buffer): void {
    if (this.#state === 'handshake') {
      if (isReadyOf(command, PUBLISHERS)) this.#start();
      else this.#end('breach');
      return;
    }
    const pong = pongTo(command);
    if (pong === null) return;
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) this.#end('breach');
    else this.#socket.write(pong);
  }

  #start(): void {
    const { times, topic, onReady } = this.#options;
    clearTimeout(this.#handshakeTimer);
    this.#state = 'ready';
    this.#socket.write(subscription(topic, this.#peerMinor));
    // 3.0 has no PING: some of its publishers end a link that brings one.
    if (this.#peerMinor > 0) {
      this.#heartbeatTimer = setInterval(() => this.#beat(), times.heartbeatIntervalMs);
    }
    onReady();
  }

  #beat(): void {
    if (this.#isPaused) return;
    this.#socket.write(PING);
    this.#silenceTimer ??= setTimeout(() => {
      // What came while this process was busy has not been read yet.
      setImmediate(() => {
        if (this.#silenceTimer !== undefined) this.#end('lost');
      });
    }, this.#options.times.heartbeatTimeoutMs);
  }

  #endSilence(): void {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = undefined;
  }

  #pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  #rest(): void {
    if (this.#isResting || this.#state === 'ended') return;
    this.#isResting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#isResting = false;
      this.#goOn();
    });
  }

  #goOn(): void {
    if (!this.#isPaused && !this.#isResting && this.#state !== 'ended') this.#socket.resume();
  }

  #room(): Buffer {
    const room = this.#reader.room();
    this.#roomBytes = room.length;
    return room;
  }
}

function hasTopic({ slab, firstAt, firstLength }: WireMessage, topic: Buffer): boolean {
  if (firstLength < topic.length) return false;
  return topic.compare(slab.bytes, firstAt, firstAt + topic.length) === 0;
}
