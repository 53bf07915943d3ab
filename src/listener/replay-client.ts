/**
 * ReplayClient: puts replay requests to one engine's ROUTER.
 *
 * Socket   a DEALER a request: there is no id in the protocol, so a socket is what keeps one answer from
 *          the next. No receive mark: engines lose what a slow reader leaves behind, without a word.
 * Fails    where there is no handshake within connectMs.
 * Dropped  an answer under way is read on for a while and thrown away, so that it can be counted as late.
 */
import { Dealer } from 'zeromq';
import { MessageReader, socketOptions } from '../connections/zmq.ts';
import type { ReplayTransport } from './engine-stream.ts';
import type { FrameFault } from './frames.ts';
import { type ReplayMessage, readReplayFrames, replayRequest } from './replay-frames.ts';

export interface ReplayClientOptions {
  readonly endpoint: string;
  /** Prefix of the topics taken, where the answer names them. */
  readonly topic: string;
  readonly maxMessageBytes: number;
  readonly connectMs: number;
  readonly onMessage: (id: number, message: Exclude<ReplayMessage, 'foreign' | FrameFault>) => void;
  readonly onMalformed: (reason: FrameFault) => void;
  readonly onFailure: (id: number) => void;
}

/** How long a dropped answer is read on, and how many of them. */
const LATE_MS = 10_000;
const MAX_LATE = 2;

interface Answer {
  readonly id: number;
  readonly socket: Dealer;
  readonly reader: MessageReader;
  isConnected: boolean;
  isDropped: boolean;
  timer: NodeJS.Timeout;
}

export class ReplayClient implements ReplayTransport {
  readonly #options: ReplayClientOptions;
  /** By id, oldest first. */
  readonly #answers = new Map<number, Answer>();
  readonly #closing = new Set<Promise<void>>();
  #isStopped = false;

  constructor(options: ReplayClientOptions) {
    this.#options = options;
  }

  ask(id: number, start: bigint): void {
    if (this.#isStopped) return;
    const { endpoint, maxMessageBytes, connectMs, onFailure } = this.#options;
    const socket = new Dealer({
      ...socketOptions(endpoint, 0),
      receiveHighWaterMark: 0,
      maxMessageSize: maxMessageBytes,
    });
    const reader = new MessageReader(socket, (frames) => this.#take(id, frames));
    const timer = setTimeout(() => onFailure(id), connectMs);
    const answer: Answer = { id, socket, reader, isConnected: false, isDropped: false, timer };
    this.#answers.set(id, answer);
    socket.events.on('handshake', () => {
      answer.isConnected = true;
      if (!answer.isDropped) clearTimeout(timer);
    });
    socket.connect(endpoint);
    // It leaves with the handshake; a socket that is closed before takes it along.
    socket.send(replayRequest(start)).catch(() => onFailure(id));
  }

  drop(id: number): void {
    const answer = this.#answers.get(id);
    if (answer === undefined || answer.isDropped) return;
    clearTimeout(answer.timer);
    if (!answer.isConnected) {
      this.#close(answer);
      return;
    }
    answer.isDropped = true;
    answer.timer = setTimeout(() => this.#close(answer), LATE_MS);
    const late = [...this.#answers.values()].filter(({ isDropped }) => isDropped);
    for (const oldest of late.slice(0, -MAX_LATE)) this.#close(oldest);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const answer of this.#answers.values()) this.#close(answer);
    await Promise.all(this.#closing);
  }

  #take(id: number, frames: readonly Buffer[]): void {
    const { topic, onMessage, onMalformed } = this.#options;
    const answer = this.#answers.get(id);
    if (answer === undefined) return;
    const message = readReplayFrames(frames, topic);
    if (message === 'frames' || message === 'sequence') onMalformed(message);
    else if (message === 'end') this.#close(answer);
    if (message === 'end' || typeof message === 'object') onMessage(id, message);
  }

  #close(answer: Answer): void {
    clearTimeout(answer.timer);
    this.#answers.delete(answer.id);
    const closed = answer.reader.close(null).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
