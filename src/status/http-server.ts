/**
 * StatusServer: status page, metrics, health and API over HTTP, read-only.
 *
 * Bounds   header bytes, time to send a request, one at a time on a connection, connections, streams: a
 *          client can hold the relay up in none of them.
 * Stop     streams and idle connections close at once, an answer under way gets a short grace.
 * Throws   HttpListenError from `start`; a route that fails is a 500 and a warning.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { errorLine, HttpListenError } from '../errors.ts';
import type { Warner } from '../log.ts';
import { allowedHosts, bracketed, isAllowedHost, unbracketed } from '../protocol/http-hosts.ts';
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

export interface StatusServerLimits {
  readonly maxConnections: number;
  readonly maxStreamClients: number;
  readonly maxHeaderBytes: number;
  /** For the headers and for the whole request. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly streamIntervalMs: number;
  /** For answers under way when the server stops. */
  readonly stopGraceMs: number;
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
  readonly #host: string;
  readonly #port: number;
  readonly #limits: StatusServerLimits;
  readonly #warner: Pick<Warner, 'warn'>;
  readonly #context: RouteContext;
  readonly #server: Server;
  /** Null where any `Host` may be named. */
  #allowedHosts: ReadonlySet<string> | null = null;
  refusedConnections = 0;
  refusedRequests = 0;

  constructor(options: StatusServerOptions) {
    const { host, port, status, metrics, index, objects, warner } = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#host = unbracketed(host);
    this.#port = port;
    this.#limits = limits;
    this.#warner = warner;
    const stream = new EventStream({
      maxClients: limits.maxStreamClients,
      intervalMs: limits.streamIntervalMs,
      nextText: () => jsonText(status.status()),
      onError: (error) => this.#warnFailure('/api/stream', error),
    });
    this.#context = { status, metrics, stream, index, objects };
    this.#server = createServer(
      {
        maxHeaderSize: limits.maxHeaderBytes,
        headersTimeout: limits.requestTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: 1000,
      },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.maxConnections = limits.maxConnections;
    this.#server.on('drop', () => this.#onDrop());
  }

  /** The URL has the port that was bound. */
  async start(): Promise<{ url: string }> {
    this.#server.listen({ host: this.#host, port: this.#port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      throw this.#listenError(error);
    }
    this.#server.on('error', (error) => this.#warnFailure('accept', error));
    const bound = this.#server.address();
    if (bound === null || typeof bound === 'string') {
      throw this.#listenError(new Error('no TCP address was bound'));
    }
    this.#allowedHosts = allowedHosts(bound.address, this.#host);
    return { url: `http://${bracketed(this.#host)}:${bound.port}` };
  }

  /** Also before `start`, and more than once. */
  async stop(): Promise<void> {
    this.#context.stream.close();
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeIdleConnections();
    const grace = setTimeout(() => this.#server.closeAllConnections(), this.#limits.stopGraceMs);
    await closed;
    clearTimeout(grace);
  }

  #listenError(cause: unknown): HttpListenError {
    return new HttpListenError('--http', `${bracketed(this.#host)}:${this.#port}`, cause);
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
    if (this.#allowedHosts !== null && !isAllowedHost(request.headers.host, this.#allowedHosts)) {
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
