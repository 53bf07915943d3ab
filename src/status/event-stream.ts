/**
 * EventStream: one text to many clients as server-sent events, at once and then once an interval.
 *
 * Bounds   `maxClients`; a client that reads too slowly misses texts, and is dropped once it has
 *          missed `MAX_MISSED_TEXTS` in a row, so each holds at most one text beyond its buffer.
 * Owns     the timer, which runs only while there are clients, and their responses.
 */
import type { ServerResponse } from 'node:http';

const MAX_MISSED_TEXTS = 10;

/** How long a browser waits before it connects again. */
const RETRY_MS = 2000;

export interface EventStreamOptions {
  readonly maxClients: number;
  readonly intervalMs: number;
  /** One line. What it throws ends the open streams, and goes to `onError`. */
  readonly nextText: () => string;
  readonly onError: (error: unknown) => void;
}

export class EventStream {
  readonly #options: EventStreamOptions;
  /** Texts missed in a row, by client. */
  readonly #clients = new Map<ServerResponse, number>();
  #timer: NodeJS.Timeout | null = null;
  #closed = false;
  refusedClients = 0;
  droppedClients = 0;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  /** False where no further client is taken; nothing is written to `response` then. */
  admit(response: ServerResponse): boolean {
    if (this.#closed || this.#clients.size >= this.#options.maxClients) {
      this.refusedClients++;
      return false;
    }
    const text = this.#options.nextText();
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      // A stream ends with its connection; a proxy must not collect it.
      Connection: 'close',
      'X-Accel-Buffering': 'no',
    });
    response.once('close', () => this.#remove(response));
    // Without a listener a write that meets a connection just gone would end the process.
    response.on('error', () => this.#remove(response));
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.#clients.set(response, 0);
    this.#send(response, 0, text);
    this.#timer ??= setInterval(() => this.#tick(), this.#options.intervalMs);
    return true;
  }

  close(): void {
    this.#closed = true;
    this.#endAll();
  }

  #tick(): void {
    let text: string;
    try {
      text = this.#options.nextText();
    } catch (error) {
      this.#endAll();
      this.#options.onError(error);
      return;
    }
    for (const [response, missed] of this.#clients) this.#send(response, missed, text);
  }

  #send(response: ServerResponse, missed: number, text: string): void {
    if (!response.writableNeedDrain) {
      response.write(`data: ${text}\n\n`);
      this.#clients.set(response, 0);
    } else if (missed < MAX_MISSED_TEXTS) {
      this.#clients.set(response, missed + 1);
    } else {
      this.droppedClients++;
      this.#remove(response);
      response.destroy();
    }
  }

  #endAll(): void {
    for (const response of this.#clients.keys()) {
      this.#remove(response);
      response.end();
    }
  }

  #remove(response: ServerResponse): void {
    this.#clients.delete(response);
    if (this.#clients.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
