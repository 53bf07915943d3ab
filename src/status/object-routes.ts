/**
 * Routes of the stores' objects: all that are held, and ranges of the events that tell it.
 *
 * Snapshot  the listing says in its headers which event it begins behind: it and the events since give
 *           the state, whatever changes while it is read.
 * Bounds    listings at a time, a client that has to read on, events a page. 404 where there is no store.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { drained, JSON_LINES_TYPE } from './json-lines.ts';
import type { ObjectListing, ObjectSource } from './object-source.ts';
import { eventIdOf } from './query-values.ts';
import { jsonText, sendError, sendJson } from './responses.ts';

const EVENT_BOUNDS = { maxEvents: 1000, maxBytes: 256 * 1024 };
const MAX_LISTINGS = 4;

let listingsUnderWay = 0;

/** Each object as a JSON line. */
export async function sendObjects(
  source: ObjectSource,
  query: URLSearchParams,
  isHead: boolean,
  response: ServerResponse,
): Promise<void> {
  const listing = source.objects();
  if (listing === null) {
    sendNoStore(response);
    return;
  }
  const headers = {
    'Content-Type': JSON_LINES_TYPE,
    'X-Accel-Buffering': 'no',
    'X-Kvrelay-Publisher-Id': listing.publisherId,
    'X-Kvrelay-Last-Event-Id': listing.lastEventId,
  };
  if (isHead) {
    response.writeHead(200, headers).end();
    return;
  }
  if (listingsUnderWay >= MAX_LISTINGS) {
    const message = 'Other listings are being read; ask again when one is over';
    sendError(response, 503, 'listings_under_way', message, { 'Retry-After': '5' });
    return;
  }
  listingsUnderWay++;
  try {
    response.writeHead(200, headers);
    await writePages(listing, query, response);
    response.end();
  } finally {
    listingsUnderWay--;
  }
}

async function writePages(
  listing: ObjectListing,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const filter = {
    source: query.get('source'),
    backendId: query.get('backend'),
    tenantId: query.get('tenant'),
    prefix: query.get('prefix'),
  };
  for (const rows of listing.pages(filter)) {
    if (response.destroyed) return;
    const lines = rows.map((row) => `${jsonText(row)}\n`).join('');
    if (lines !== '' && !response.write(lines)) await drained(response);
    await nextTurn();
  }
}

/** `start` and `end` are event ids; the answer goes on at `next_event_id` where it is no null. */
export function sendObjectEvents(
  source: ObjectSource,
  query: URLSearchParams,
  response: ServerResponse,
): void {
  const listing = source.objects();
  if (listing === null) {
    sendNoStore(response);
    return;
  }
  const [start, end] = ['start', 'end'].map((name) => eventIdOf(query.get(name)));
  if (start === undefined || end === undefined) {
    sendError(response, 400, 'bad_event_id', 'start and end take decimal event ids');
    return;
  }
  sendJson(response, 200, listing.range(start, end, EVENT_BOUNDS));
}

function sendNoStore(response: ServerResponse): void {
  const message = 'This relay follows no store; start it with --mooncake-endpoint';
  sendError(response, 404, 'no_store', message);
}
