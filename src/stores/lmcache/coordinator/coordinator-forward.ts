/**
 * CoordinatorForward: hands requests on to the coordinator behind, and its answers back.
 *
 * Sees     whoever asks sees what it would have seen: the answer as it is; a connection that ends without one
 *          where there is no coordinator; no answer where it is slow.
 * Order    what must not overtake goes out one after the other, the next as soon as one is answered, and goes out though
 *          its asker has given up meanwhile. Everything else goes out at once.
 * Loops    what goes out names this relay in `Via`: what comes back by another address is known by it.
 * Bounds   bytes that wait for an answer, and the time of one request until its answer has been taken. Never throws.
 */
import { randomBytes } from 'node:crypto';
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import type { CoordinatorMetrics, ForwardOutcome } from '../../../metrics/coordinator-metrics.ts';

export interface ForwardOptions {
  /** Without a trailing slash. */
  readonly url: string;
  readonly counts: CoordinatorMetrics;
  readonly timeoutMs: number;
  readonly maxWaitingBytes: number;
  readonly onFailure: (outcome: ForwardOutcome, reason: string) => void;
}

/** Of the asker's own connection, not of what it asks. */
const HOP_HEADERS = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export class CoordinatorForward {
  readonly url: string;
  readonly #options: ForwardOptions;
  readonly #underWay = new Set<ClientRequest>();
  readonly #inOrder = new Set<Promise<void>>();
  readonly #pseudonym = `1.1 kvrelay-${randomBytes(8).toString('hex')}`;
  #waitingBytes = 0;
  /** Resolves when the next one may go out. */
  #lane: Promise<void> = Promise.resolve();
  #isStopped = false;
  #lastAnswerAtMs: number | null = null;
  /** Since the last answer. */
  failures = 0;

  constructor(options: ForwardOptions) {
    this.url = options.url;
    this.#options = options;
  }

  get lastAnswerAgeMs(): number | null {
    const atMs = this.#lastAnswerAtMs;
    return atMs === null ? null : Math.round(performance.now() - atMs);
  }

  /** It has gone out from here before. */
  isOwn({ headers }: IncomingMessage): boolean {
    return headers.via?.includes(this.#pseudonym) === true;
  }

  /** Behind everything that was sent so before. Resolves as `send` does. */
  async sendInOrder(
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const release = this.#hold(body, response);
    if (release === null) return;
    const before = this.#lane;
    let onAnswered: () => void = release;
    this.#lane = new Promise((letNextGo) => {
      onAnswered = () => {
        release();
        letNextGo();
      };
    });
    const exchange = before.then(() => this.#exchange(request, body, response, onAnswered));
    this.#inOrder.add(exchange);
    await exchange;
    this.#inOrder.delete(exchange);
  }

  /** Resolves once the answer has been handed back, or there will be none. `body` null: what is left unread. */
  async send(
    request: IncomingMessage,
    body: Buffer | null,
    response: ServerResponse,
  ): Promise<void> {
    const release = this.#hold(body, response);
    if (release !== null) await this.#exchange(request, body, response, release);
  }

  /** What is under way has `graceMs` to end. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#end(), graceMs);
    await Promise.all(this.#inOrder);
    clearTimeout(timer);
    this.#end();
  }

  #end(): void {
    this.#isStopped = true;
    for (const upstream of this.#underWay) upstream.destroy();
  }

  /** Gives the room back, once; null: there is none. */
  #hold(body: Buffer | null, response: ServerResponse): (() => void) | null {
    const bytes = body?.length ?? 0;
    if (this.#waitingBytes + bytes > this.#options.maxWaitingBytes) {
      this.#fail('overflow', 'too much waits for an answer', response);
      return null;
    }
    this.#waitingBytes += bytes;
    let left = bytes;
    return () => {
      this.#waitingBytes -= left;
      left = 0;
    };
  }

  /** `onAnswered` is called at least once, whatever comes of it. */
  async #exchange(
    request: IncomingMessage,
    body: Buffer | null,
    response: ServerResponse,
    onAnswered: () => void,
  ): Promise<void> {
    const { timeoutMs } = this.#options;
    let upstream: ClientRequest | null = null;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      upstream?.destroy(new Error(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      if (this.#isStopped) throw new Error('stopped');
      upstream = this.#open(request, body);
      this.#underWay.add(upstream);
      if (body === null) streamBody(request, upstream);
      else upstream.end(body);
      const answer = await answerTo(upstream);
      onAnswered();
      await handBack(answer, response);
      this.#options.counts.forwards.answered++;
      this.#lastAnswerAtMs = performance.now();
      this.failures = 0;
    } catch (error) {
      // What has not gone out is nothing that the one behind has failed at.
      if (upstream === null && this.#isStopped) response.destroy();
      else this.#fail(isLate ? 'timeout' : 'unreachable', String(error), response);
    } finally {
      clearTimeout(timer);
      onAnswered();
      if (upstream !== null) {
        this.#underWay.delete(upstream);
        upstream.destroy();
      }
    }
  }

  #open(request: IncomingMessage, body: Buffer | null): ClientRequest {
    const { method = 'GET', url: path = '/' } = request;
    const headers: Record<string, string | string[]> = ownHeaders(request.headers);
    const { via } = request.headers;
    headers.via = via === undefined ? this.#pseudonym : `${via}, ${this.#pseudonym}`;
    if (body !== null && (body.length > 0 || method !== 'GET')) {
      headers['content-length'] = String(body.length);
    }
    const open = this.url.startsWith('https:') ? requestHttps : requestHttp;
    // A connection each: one that is kept may be closed by the other end just as it is used again.
    return open(this.url, { path, method, headers, agent: false });
  }

  #fail(outcome: ForwardOutcome, reason: string, response: ServerResponse): void {
    this.failures++;
    this.#options.counts.forwards[outcome]++;
    this.#options.onFailure(outcome, reason);
    response.destroy();
  }
}

function streamBody(request: IncomingMessage, upstream: ClientRequest): void {
  request.pipe(upstream);
  request.on('close', () => {
    if (!request.complete) upstream.destroy();
  });
}

function answerTo(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.on('response', resolve);
    upstream.on('error', reject);
    // A server that would speak another protocol ends it with neither an answer nor an error.
    upstream.on('close', () => reject(new Error('the connection ended without an answer')));
  });
}

/** Read to its end though nobody takes it any more; rejects where it breaks off. */
async function handBack(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(answer.statusCode ?? 502, ownHeaders(answer.headers));
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    if (response.destroyed || response.write(chunk)) continue;
    await roomIn(response, answer);
  }
  if (!response.destroyed) response.end();
}

/** Also where nobody takes the answer any more, or it has broken off. */
function roomIn(response: ServerResponse, answer: IncomingMessage): Promise<void> {
  if (answer.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const goOn = (): void => {
      response.off('drain', goOn).off('close', goOn);
      answer.off('close', goOn);
      resolve();
    };
    response.on('drain', goOn).on('close', goOn);
    answer.on('close', goOn);
  });
}

function ownHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const own: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !HOP_HEADERS.has(name)) own[name] = value;
  }
  return own;
}
