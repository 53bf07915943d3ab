/** Routes: what each path answers, and to which method. Nothing over HTTP changes state. */
import type { ServerResponse } from 'node:http';
import type { EventStream } from './event-stream.ts';
import { sendDump, sendEvents, sendMatch } from './index-routes.ts';
import type { IndexSource } from './index-source.ts';
import { sendObjectEvents, sendObjects } from './object-routes.ts';
import type { ObjectSource } from './object-source.ts';
import { STATUS_PAGE } from './page.ts';
import { sendError, sendJson, sendText } from './responses.ts';
import type { StatusSource } from './status-source.ts';

/** What prom-client's registry gives. */
export interface Exposition {
  readonly contentType: string;
  metrics(): Promise<string>;
}

export interface RouteContext {
  readonly status: StatusSource;
  readonly metrics: Exposition;
  readonly stream: EventStream;
  readonly index: IndexSource;
  readonly objects: ObjectSource;
}

export interface RouteRequest {
  readonly query: URLSearchParams;
  readonly isHead: boolean;
  /** Of a POST; '' otherwise. */
  readonly body: string;
}

export type Route = (
  context: RouteContext,
  request: RouteRequest,
  response: ServerResponse,
) => void | Promise<void>;

export const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/', sendPage],
  ['/metrics', sendMetrics],
  ['/health/live', sendLive],
  ['/health/ready', sendReady],
  ['/api/status', sendStatus],
  ['/api/stream', openStream],
  ['/api/events', ({ index }, { query }, response) => sendEvents(index, query, response)],
  [
    '/api/dump',
    ({ index }, { query, isHead }, response) => sendDump(index, query, isHead, response),
  ],
  [
    '/api/objects',
    ({ objects }, { query, isHead }, response) => sendObjects(objects, query, isHead, response),
  ],
  [
    '/api/objects/events',
    ({ objects }, { query }, response) => sendObjectEvents(objects, query, response),
  ],
  ['/api/match', ({ index }, { body }, response) => sendMatch(index, body, response)],
]);

/** These are asked with a body. */
export const POST_PATHS: ReadonlySet<string> = new Set(['/api/match']);
export const MAX_BODY_BYTES: number = 2 << 20;

function sendPage(_context: RouteContext, _request: RouteRequest, response: ServerResponse): void {
  const { html, contentSecurityPolicy } = STATUS_PAGE;
  sendText(response, 200, 'text/html; charset=utf-8', html, {
    'Content-Security-Policy': contentSecurityPolicy,
  });
}

async function sendMetrics(
  { metrics }: RouteContext,
  _request: RouteRequest,
  response: ServerResponse,
): Promise<void> {
  sendText(response, 200, metrics.contentType, await metrics.metrics());
}

function sendLive(
  { status }: RouteContext,
  _request: RouteRequest,
  response: ServerResponse,
): void {
  const live = status.live();
  sendJson(response, live ? 200 : 503, { live });
}

/** Once ready, later trouble stands in the body only: a router must not lose a worker over it. */
function sendReady(
  { status }: RouteContext,
  { query }: RouteRequest,
  response: ServerResponse,
): void {
  const { ready, waitingFor } = status.ready();
  const { state, ranks, sources } = status.status();
  const degraded = [
    ...ranks.flatMap((rank) =>
      rank.degraded.map((notice) => ({ dp_rank: rank.dp_rank, ...notice })),
    ),
    ...sources.flatMap(({ source, degraded }) => degraded.map((notice) => ({ source, ...notice }))),
  ];
  const isDegraded = state === 'degraded' || degraded.length > 0;
  const strict = query.get('strict') === '1';
  sendJson(response, ready && !(strict && isDegraded) ? 200 : 503, {
    ready,
    waiting_for: waitingFor,
    state,
    degraded,
  });
}

function sendStatus(
  { status }: RouteContext,
  _request: RouteRequest,
  response: ServerResponse,
): void {
  sendJson(response, 200, status.status());
}

function openStream(
  { stream }: RouteContext,
  { isHead }: RouteRequest,
  response: ServerResponse,
): void {
  if (isHead) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).end();
  } else if (!stream.admit(response)) {
    const message = 'Too many open streams; read /api/status instead';
    sendError(response, 503, 'too_many_streams', message, { 'Retry-After': '30' });
  }
}
