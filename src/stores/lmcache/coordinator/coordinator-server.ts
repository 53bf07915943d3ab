/**
 * CoordinatorServer: what LMCache's MP servers take for their coordinator.
 *
 * Takes    `POST /events`, and who comes, stays and leaves under `/instances`, for the view in any case.
 * Answers  as the coordinator of LMCache 0.5.6 does; where one stands behind, it answers everything itself.
 * Bounds   those of HttpListener, body bytes, all bodies under way.
 * Refuses  what a browser sends on behalf of a web site, and on loopback any `Host` but its own names.
 * Throws   HttpListenError from `start`; a request never makes it throw.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpListener, type HttpListenerLimits } from '../../../connections/http-listener.ts';
import {
  type CoordinatorFault,
  CoordinatorReader,
} from '../../../engines/lmcache/coordinator-reader.ts';
import type {
  CoordinatorMetrics,
  CoordinatorRefusal,
} from '../../../metrics/coordinator-metrics.ts';
import type { SourceMetrics } from '../../../metrics/source-metrics.ts';
import type { CoordinatorForward } from './coordinator-forward.ts';
import type { CoordinatorView } from './coordinator-view.ts';
import { RequestBodies } from './request-bodies.ts';
import { sendJson } from './send-json.ts';
import { instancePathOf, registeredIdOf, StandIn } from './stand-in.ts';

const LIMITS: HttpListenerLimits = {
  maxConnections: 256,
  maxHeaderBytes: 16_384,
  requestTimeoutMs: 30_000,
  // Longer than servers wait between two heartbeats.
  keepAliveMs: 10_000,
  stopGraceMs: 250,
  // Longer than the coordinator behind may take for an answer.
  stalledTimeoutMs: 90_000,
};
/** Bodies of the largest size that may be under way. */
const BODIES_AT_A_TIME = 4;

export interface CoordinatorServerOptions {
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly maxBodyBytes: number;
  readonly view: CoordinatorView;
  /** Null where nobody stands behind. */
  readonly forward: CoordinatorForward | null;
  readonly metrics: SourceMetrics;
  readonly counts: CoordinatorMetrics;
  readonly onRefusal: (refusal: CoordinatorRefusal, message: string) => void;
}

export class CoordinatorServer {
  readonly standIn: StandIn;
  lastPostAtMs: number | null = null;
  readonly #options: CoordinatorServerOptions;
  readonly #reader = new CoordinatorReader();
  readonly #bodies: RequestBodies;
  readonly #listener: HttpListener;

  constructor(options: CoordinatorServerOptions) {
    const { host, port, maxBodyBytes } = options;
    this.#options = options;
    this.standIn = new StandIn(options.view);
    this.#bodies = new RequestBodies(maxBodyBytes, maxBodyBytes * BODIES_AT_A_TIME);
    this.#listener = new HttpListener({
      setting: '--lmcache-coordinator-listen',
      host,
      port,
      limits: LIMITS,
      onRequest: (request, response) => void this.#answer(request, response),
      onDrop: () => this.#note('connections', 'too many connections'),
      onError: (error) => this.#note('connections', String(error)),
    });
  }

  get url(): string {
    return this.#listener.url;
  }

  get isListening(): boolean {
    return this.#listener.isListening;
  }

  start(): Promise<void> {
    return this.#listener.start();
  }

  stop(): Promise<void> {
    return this.#listener.stop();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#options.counts.requests++;
    // A connection that breaks is no error of ours.
    response.on('error', () => undefined);
    if (response.socket === null) {
      this.#refuse(response, 503, 'busy', 'Wait for the answer before the next request');
      return;
    }
    if (!this.#isWelcome(request, response)) return;
    const { forward } = this.#options;
    if (forward?.isOwn(request) === true) {
      this.#refuse(response, 508, 'loop', 'It has been here before', { Connection: 'close' });
      return;
    }
    const [path = ''] = (request.url ?? '').split('?', 1);
    const isPost = request.method === 'POST' && path === '/events';
    if (forward !== null && this.#bodies.declared(request) === null) {
      if (isPost) this.#options.metrics.malformed.oversize++;
      this.#note('oversize', 'a body is handed on unread');
      await forward.send(request, null, response);
      return;
    }
    const body = await this.#bodies.read(request);
    if (typeof body === 'string') {
      if (body === 'oversize' && isPost) this.#options.metrics.malformed.oversize++;
      const status = body === 'oversize' ? 413 : body === 'busy' ? 503 : 400;
      this.#refuse(response, status, body, `The body is refused: ${body}`);
      return;
    }
    if (isPost) await this.#takeEvents(request, body, response);
    else await this.#takeOther(request, path, body, response);
  }

  async #takeEvents(
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const { view, forward, metrics } = this.#options;
    metrics.messages++;
    metrics.bytes += body.length;
    this.lastPostAtMs = performance.now();
    const batches = this.#reader.read(body);
    const isFault = 'reason' in batches;
    if (isFault) metrics.malformed[batches.reason]++;
    const taken = isFault ? null : view.take(batches);
    if (forward !== null) await forward.sendInOrder(request, body, response);
    else if (taken !== null) sendJson(response, 200, taken);
    if (!isFault) return;
    const message = `${batches.at}: ${batches.message}`;
    if (forward === null) this.#refuseBatches(response, batches);
    else this.#note('invalid', message);
  }

  /** In the form in which the coordinator tells of a body that is none. */
  #refuseBatches(response: ServerResponse, { reason, at, message }: CoordinatorFault): void {
    this.#note('invalid', `${at}: ${message}`);
    const loc = ['body', ...at.split('.')];
    const detail = [
      { type: reason === 'json' ? 'json_invalid' : 'value_error', loc, msg: message },
    ];
    sendJson(response, reason === 'oversize' ? 413 : 422, { detail });
  }

  async #takeOther(
    request: IncomingMessage,
    path: string,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const { forward, view } = this.#options;
    const { method = '' } = request;
    if (forward === null) {
      const { status, value, refusal, headers } = this.standIn.answer(method, path, body);
      if (refusal !== undefined) this.#note(refusal, `${method} ${status}`);
      if (value === null) response.writeHead(status).end();
      else sendJson(response, status, value, headers);
      return;
    }
    const { instanceId, isHeartbeat } = instancePathOf(path);
    const isLeave = method === 'DELETE' && instanceId !== null && !isHeartbeat;
    const registered = method === 'POST' && path === '/instances' ? registeredIdOf(body) : null;
    if (isLeave) view.leave(instanceId);
    else if (registered !== null) view.noteRegistration(registered);
    else if (method === 'PUT' && instanceId !== null && isHeartbeat) view.noteMember(instanceId);
    // Behind the batches that it has sent before it left.
    if (isLeave) await forward.sendInOrder(request, body, response);
    else await forward.send(request, body, response);
  }

  #isWelcome(request: IncomingMessage, response: ServerResponse): boolean {
    const { headers, method, url } = request;
    if (!this.#listener.isOwnHost(request)) {
      const message = 'Only its own names are served; bind another address';
      this.#refuse(response, 403, 'host', message, { Connection: 'close' });
      return false;
    }
    // A client of a proxy names an address, and OPTIONS a star.
    if (!(url ?? '').startsWith('/')) {
      this.#refuse(response, 400, 'unknown_path', 'No path', { Connection: 'close' });
      return false;
    }
    if (method === 'GET' || headers.origin === undefined) return true;
    const message = 'Not for web sites';
    this.#refuse(response, 403, 'origin', message, { Connection: 'close' });
    return false;
  }

  #refuse(
    response: ServerResponse,
    status: number,
    refusal: CoordinatorRefusal,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ): void {
    this.#note(refusal, message);
    // A body may be left that nobody reads.
    const isUnread = refusal === 'oversize' || refusal === 'busy' || refusal === 'incomplete';
    sendJson(
      response,
      status,
      { detail: message },
      { ...headers, ...(isUnread && { Connection: 'close' }) },
    );
  }

  #note(refusal: CoordinatorRefusal, message: string): void {
    this.#options.counts.refusals[refusal]++;
    this.#options.onRefusal(refusal, message);
  }
}
