/**
 * CoordinatorForward: hands requests on to the coordinator behind, and its answers back.
 *
 * Sees     whoever asks sees what it would have seen: the answer as it is; a connection that ends without one
 *          where there is no coordinator; no answer where it is slow.
 * Order    what must not overtake goes out one after the other, and goes out though its asker has given up
 *          meanwhile. Everything else goes out at once.
 * Bounds   bytes that wait for their turn, and the time of one request. Never throws.
 */
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
  #waitingBytes = 0;
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

  /** Behind everything that was sent so before. */
  sendInOrder(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    if (this.#waitingBytes + body.length > this.#options.maxWaitingBytes) {
      this.#fail('overflow', 'too much waits for its turn', response);
      return Promise.resolve();
    }
    this.#waitingBytes += body.length;
    this.#lane = this.#lane.then(async () => {
      await this.send(request, body, response);
      this.#waitingBytes -= body.length;
    });
    return this.#lane;
  }

  /** Resolves once the answer has been handed back, or there will be none. `body` null: what is left unread. */
  async send(
    request: IncomingMessage,
    body: Buffer | null,
    response: ServerResponse,
  ): Promise<void> {
    if (this.#isStopped) {
      response.destroy();
      return;
    }
    const { timeoutMs } = this.#options;
    const upstream = this.#open(request, body);
    this.#underWay.add(upstream);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      upstream.destroy(new Error(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      if (body === null) streamBody(request, upstream);
      else upstream.end(body);
      const answer = await answerTo(upstream);
      await handBack(answer, response);
      this.#options.counts.forwards.answered++;
      this.#lastAnswerAtMs = performance.now();
      this.failures = 0;
    } catch (error) {
      this.#fail(isLate ? 'timeout' : 'unreachable', String(error), response);
    } finally {
      clearTimeout(timer);
      this.#underWay.delete(upstream);
      upstream.destroy();
    }
  }

  /** What is under way has `graceMs` to end. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#isStopped = true;
      for (const upstream of this.#underWay) upstream.destroy();
    }, graceMs);
    await this.#lane;
    clearTimeout(timer);
    this.#isStopped = true;
    for (const upstream of this.#underWay) upstream.destroy();
  }

  #open(request: IncomingMessage, body: Buffer | null): ClientRequest {
    const { method = 'GET', url = '/' } = request;
    const headers: Record<string, string | string[]> = ownHeaders(request.headers);
    if (body !== null && method !== 'GET') headers['content-length'] = String(body.length);
    const open = this.url.startsWith('https:') ? requestHttps : requestHttp;
    // A connection each: one that is kept may be closed by the other end just as it is used again.
    return open(`${this.url}${url}`, { method, headers, agent: false });
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
    await new Promise<void>((resolve) => {
      response.once('drain', resolve);
      response.once('close', resolve);
    });
  }
  if (!response.destroyed) response.end();
}

function ownHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const own: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !HOP_HEADERS.has(name)) own[name] = value;
  }
  return own;
}
