/**
 * StatusServer: status page, metrics, health and API over HTTP, read-only.
 *
 * Bounds   those of HttpListener, requests at a time on a connection (one), streams: a client can hold the relay up in
 *          none of them.
 * Stop     as HttpListener; streams close at once.
 * Throws   HttpListenError from `start`; a route that fails is a 500 and a warning.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpListener, type HttpListenerLimits } from '../connections/http-listener.ts';
import { errorLine } from '../errors.ts';
import type { Warner } from '../log.ts';
import { EventStream } from './event-stream.ts';
import type { IndexSource } from './index-source.ts';
import type { ObjectSource } from './object-source.ts';
import { readBody } from './request-body.ts';
import { jsonText, sendError, setSecurityHeaders } from './responses.ts';
import {
  type Exposition,
  MAX_BODY_BYTES,
  POST_PATHS,
  ROUTES,
  type Route,
  type RouteContext,
} from './routes.ts';
import type { StatusSource } from './status-source.ts';

export interface StatusServerLimits extends HttpListenerLimits {
  readonly maxStreamClients: number;
  readonly streamIntervalMs: number;
}

const DEFAULT_LIMITS: StatusServerLimits = {
  maxConnections: 128,
  maxStreamClients: 16,
  maxHeaderBytes: 8192,
  requestTimeoutMs: 10_000,
  keepAliveMs: 5000,
  streamIntervalMs: 1000,
  stopGraceMs: 250,
};

export interface StatusServerOptions {
  /** A name or an address; IPv6 with or without brackets. */
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly status: StatusSource;
  readonly metrics: Exposition;
  readonly index: IndexSource;
  readonly objects: ObjectSource;
  readonly warner: Pick<Warner, 'warn'>;
  readonly limits?: Partial<StatusServerLimits>;
}

export class StatusServer {
  readonly #limits: StatusServerLimits;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #context: RouteContext;
  readonly #listener: HttpListener;
  refusedConnections = 0;
  refusedRequests = 0;

  constructor(options: StatusServerOptions) {
    const { host, port, status, metrics, index, objects, warner } = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#limits = limits;
    this.#warner = warner;
    const stream = new EventStream({
      maxClients: limits.maxStreamClients,
      intervalMs: limits.streamIntervalMs,
      nextText: () => jsonText(status.status()),
      onError: (error) => this.#warnFailure('/api/stream', error),
    });
    this.#context = { status, metrics, stream, index, objects };
    this.#listener = new HttpListener({
      setting: '--http',
      host,
      port,
      limits,
      onRequest: (request, response) => void this.#answer(request, response),
      onDrop: () => this.#onDrop(),
      onError: (error) => this.#warnFailure('accept', error),
    });
  }

  /** The URL has the port that was bound. */
  async start(): Promise<{ url: string }> {
    await this.#listener.start();
    return { url: this.#listener.url };
  }

  /** Also before `start`, and more than once. */
  async stop(): Promise<void> {
    this.#context.stream.close();
    await this.#listener.stop();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    setSecurityHeaders(response);
    // It has the socket already unless another answer has it: a client that sends thousands of requests
    // at once and reads nothing would have them all answered in memory.
    if (response.socket === null) {
      this.#refusePipelined(response);
      return;
    }
    // Kept apart from URL parsing, which throws on targets such as `//`.
    const [path = '', search = ''] = (request.url ?? '').split('?', 2);
    const route = this.#routeFor(path, request, response);
    if (route === null) return;
    const isHead = request.method === 'HEAD';
    const query = new URLSearchParams(search);
    try {
      const body = POST_PATHS.has(path) ? await readBody(request, MAX_BODY_BYTES) : '';
      if (body === null) {
        const message = `A body may have ${MAX_BODY_BYTES} bytes`;
        sendError(response, 413, 'body_too_large', message, { Connection: 'close' });
        return;
      }
      await route(this.#context, { query, isHead, body }, response);
    } catch (error) {
      this.#warnFailure(path, error);
      if (response.headersSent) response.destroy();
      else sendError(response, 500, 'internal_error', 'The relay could not answer; see its log');
    }
  }

  /** Null where the request has been refused. */
  #routeFor(path: string, request: IncomingMessage, response: ServerResponse): Route | null {
    // A refused request may have a body nobody will read.
    const close = { Connection: 'close' };
    if (!this.#listener.isOwnHost(request)) {
      const message = 'This relay serves its own host only; bind another address with --http';
      sendError(response, 403, 'host_not_allowed', message, close);
      return null;
    }
    const route = ROUTES.get(path);
    if (route === undefined) {
      const message = `No such path; there are ${[...ROUTES.keys()].join(', ')}`;
      sendError(response, 404, 'not_found', message, close);
      return null;
    }
    const allowed = POST_PATHS.has(path) ? ['POST'] : ['GET', 'HEAD'];
    if (!allowed.includes(request.method ?? '')) {
      const message = `This path answers ${allowed.join(' and ')} only`;
      const headers = { ...close, Allow: allowed.join(', ') };
      sendError(response, 405, 'method_not_allowed', message, headers);
      return null;
    }
    return route;
  }

  /** The connection ends behind the answer before it and this one. */
  #refusePipelined(response: ServerResponse): void {
    this.refusedRequests++;
    const message = 'Wait for the answer before you send the next request';
    sendError(response, 503, 'pipelined_request', message, { Connection: 'close' });
    this.#warner.warn(
      'http_pipelined',
      {},
      'HTTP request refused: sent before the last was answered',
    );
  }

  #onDrop(): void {
    this.refusedConnections++;
    const { maxConnections } = this.#limits;
    this.#warner.warn('http_connections', { maxConnections }, 'HTTP connection refused: too many');
  }

  #warnFailure(path: string, error: unknown): void {
    this.#warner.warn('http_failure', { path, error: errorLine(error) }, 'HTTP answer failed');
  }
}
