/** A subscriber on a plain socket: it says what a test has it say, and keeps the messages that it is sent. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { FrameReader } from '../../src/connections/zmtp/frame-reader.ts';
import { framesOf, wireCommand, wireGreeting, wireReady } from './zmtp-frames.ts';

const GREETING_BYTES = 64;

export const subscribeTo = (topic: string): Buffer => wireCommand('SUBSCRIBE', Buffer.from(topic));

export class RawSubscriber {
  readonly socket: Socket;
  /** The first three frames of each, as latin1. */
  readonly messages: string[][] = [];
  /** Name and rest of each, as latin1. */
  readonly commands: string[] = [];
  readonly #reader = new FrameReader(64 << 20);
  #hasGreeted = false;
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
    });
    onTestFinished(() => {
      socket.destroy();
    });
  }

  /** Without a word. */
  static async connect(endpoint: string): Promise<RawSubscriber> {
    const { hostname, port } = new URL(endpoint.replace('tcp:', 'http:'));
    const socket = connect({ host: hostname, port: Number(port) });
    const subscriber = new RawSubscriber(socket);
    await once(socket, 'connect');
    return subscriber;
  }

  /** With greeting and handshake, and these subscriptions. */
  static async subscribed(endpoint: string, ...topics: string[]): Promise<RawSubscriber> {
    const subscriber = await RawSubscriber.connect(endpoint);
    subscriber.say(wireGreeting(), wireReady('SUB'), ...topics.map(subscribeTo));
    return subscriber;
  }

  say(...bytes: Uint8Array[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  #take(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const byteCount = bytes.copy(this.#reader.room(), 0, at);
      this.#reader.add(byteCount);
      at += byteCount;
      this.#read();
    }
  }

  #read(): void {
    const reader = this.#reader;
    if (!this.#hasGreeted) {
      if (reader.unread.length < GREETING_BYTES) return;
      reader.skip(GREETING_BYTES);
      this.#hasGreeted = true;
    }
    for (let progress = reader.next(); progress !== 'partial'; progress = reader.next()) {
      if (progress === 'command') this.commands.push(reader.command.toString('latin1', 1));
      else if (progress === 'message' && reader.message !== null) {
        this.messages.push(framesOf(reader.message));
      } else throw new Error(`a publisher sent a ${progress}`);
    }
  }
}
