/**
 * HttpListener: what every HTTP server here has in common: bounds of its connections, the hosts it answers to, its end.
 *
 * Bounds   header bytes, time to send a request, connections; `onDrop` is told of one too many.
 * Hosts    on loopback its own names alone.
 * Stop     idle connections close at once, an answer under way gets a short grace.
 * Throws   HttpListenError from `start`.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HttpListenError } from '../errors.ts';
import { allowedHosts, bracketed, isAllowedHost, unbracketed } from './http-hosts.ts';

export interface HttpListenerLimits {
  readonly maxConnections: number;
  readonly maxHeaderBytes: number;
  /** For the headers and for the whole request. */
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  /** For answers under way when the server stops. */
  readonly stopGraceMs: number;
  /** Of a connection whose other end neither sends nor takes anything; absent: none. */
  readonly stalledTimeoutMs?: number;
}

export interface HttpListenerOptions {
  /** The flag that gives its address. */
  readonly setting: string;
  /** A name or an address; IPv6 with or without brackets. */
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly limits: HttpListenerLimits;
  /** Must not throw. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onDrop: () => void;
  /** The server itself failed, once it was bound. */
  readonly onError: (error: Error) => void;
}

export class HttpListener {
  /** With the port that was bound; before that the one that was asked for. */
  url: string;
  isListening = false;
  readonly #options: HttpListenerOptions;
  readonly #server: Server;
  /** Null where any `Host` may be named. */
  #allowedHosts: ReadonlySet<string> | null = null;

  constructor(options: HttpListenerOptions) {
    const { host, port, limits } = options;
    this.#options = options;
    this.url = `http://${bracketed(host)}:${port}`;
    this.#server = createServer(
      {
        maxHeaderSize: limits.maxHeaderBytes,
        headersTimeout: limits.requestTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: 1000,
      },
      options.onRequest,
    );
    this.#server.maxConnections = limits.maxConnections;
    this.#server.timeout = limits.stalledTimeoutMs ?? 0;
    this.#server.on('drop', () => options.onDrop());
  }

  async start(): Promise<void> {
    const { host, port, onError } = this.#options;
    this.#server.listen({ host: unbracketed(host), port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      throw this.#listenError(error);
    }
    this.#server.on('error', onError);
    const bound = this.#server.address();
    if (bound === null || typeof bound === 'string') {
      throw this.#listenError(new Error('no TCP address was bound'));
    }
    this.#allowedHosts = allowedHosts(bound.address, host);
    this.url = `http://${bracketed(host)}:${bound.port}`;
    this.isListening = true;
  }

  /** Also before `start`, and more than once. */
  async stop(): Promise<void> {
    this.isListening = false;
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeIdleConnections();
    const { stopGraceMs } = this.#options.limits;
    const grace = setTimeout(() => this.#server.closeAllConnections(), stopGraceMs);
    await closed;
    clearTimeout(grace);
  }

  /** Whether the request names a host that is served. */
  isOwnHost({ headers }: IncomingMessage): boolean {
    return this.#allowedHosts === null || isAllowedHost(headers.host, this.#allowedHosts);
  }

  #listenError(cause: unknown): HttpListenError {
    const { setting, host, port } = this.#options;
    return new HttpListenError(setting, `${bracketed(host)}:${port}`, cause);
  }
}
