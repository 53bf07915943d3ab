/**
 * Routes of the index: its newest events, its blocks, and how much of a prompt it has.
 *
 * Bounds   of events a page; of dumps one at a time and a client that has to read on; of a prompt its
 *          bytes and tokens. Each answers 404 where there is no index.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IndexedRank, IndexSource } from './index-source.ts';
import { drained, JSON_LINES_TYPE } from './json-lines.ts';
import { parsePrompt } from './match-prompt.ts';
import { eventIdOf } from './query-values.ts';
import { sendError, sendJson } from './responses.ts';
import { blockLines, routerEventJson } from './router-event-json.ts';

/** A page of events. */
const EVENT_BOUNDS = { maxEvents: 1000, maxBytes: 256 * 1024 };
const DP_RANK = /^\d{1,10}$/;

let dumpsUnderWay = 0;

/** `start` and `end` are event ids; the answer goes on at `next_event_id` where it is no null. */
export function sendEvents(
  index: IndexSource,
  query: URLSearchParams,
  response: ServerResponse,
): void {
  const rank = rankOf(index, query, response);
  if (rank === null) return;
  const ids = ['start', 'end'].map((name) => eventIdOf(query.get(name)));
  const [start, end] = ids;
  if (start === undefined || end === undefined) {
    sendError(response, 400, 'bad_event_id', 'start and end take decimal event ids');
    return;
  }
  const reading = rank.events(start, end, EVENT_BOUNDS);
  const answer = { kind: reading.kind, last_event_id: `${reading.lastEventId}` };
  if (reading.kind !== 'events') {
    const dump = reading.kind === 'tree_dump' ? { dump: `/api/dump?rank=${rank.dpRank}` } : {};
    sendJson(response, 200, { ...answer, ...dump });
    return;
  }
  const next = reading.nextEventId;
  const events = reading.events.map(routerEventJson);
  sendJson(response, 200, { ...answer, events, next_event_id: next === null ? null : `${next}` });
}

/** Every block as a JSON line, those of the device tier after their parents. */
export async function sendDump(
  index: IndexSource,
  query: URLSearchParams,
  isHead: boolean,
  response: ServerResponse,
): Promise<void> {
  const one = query.has('rank') ? rankOf(index, query, response) : null;
  if (query.has('rank') && one === null) return;
  const ranks = one === null ? index.indexedRanks() : [one];
  if (ranks.length === 0) {
    sendNoIndex(response);
    return;
  }
  if (isHead) {
    response.writeHead(200, { 'Content-Type': JSON_LINES_TYPE }).end();
    return;
  }
  if (dumpsUnderWay > 0) {
    const message = 'Another dump is being read; ask again when it is over';
    sendError(response, 503, 'dump_under_way', message, { 'Retry-After': '5' });
    return;
  }
  dumpsUnderWay++;
  try {
    for (const rank of ranks) await writeDump(rank, response);
    if (!response.headersSent) response.writeHead(200, { 'Content-Type': JSON_LINES_TYPE });
    response.end();
  } finally {
    dumpsUnderWay--;
  }
}

async function writeDump(rank: IndexedRank, response: ServerResponse): Promise<void> {
  const dump = await rank.dump();
  if (dump === null) throw new Error(`No dump of rank ${rank.dpRank} can be made at present`);
  if (!response.headersSent) {
    response.writeHead(200, { 'Content-Type': JSON_LINES_TYPE, 'X-Accel-Buffering': 'no' });
  }
  for (const chunk of dump.chunks) {
    for (const lines of blockLines(chunk)) {
      if (response.destroyed) return;
      if (!response.write(lines)) await drained(response);
      await nextTurn();
    }
  }
}

/** `body` is the JSON of a prompt; see match-prompt.ts. */
export function sendMatch(index: IndexSource, body: string, response: ServerResponse): void {
  const ranks = index.indexedRanks();
  if (ranks.length === 0) {
    sendNoIndex(response);
    return;
  }
  const prompt = parsePrompt(body);
  if (typeof prompt === 'string') {
    sendError(response, 400, 'bad_prompt', prompt);
    return;
  }
  const matches = ranks.flatMap((rank) => rank.match(prompt));
  sendJson(response, 200, {
    ranks: matches.map(({ dpRank, blocks }) => ({ dp_rank: dpRank, blocks })),
  });
}

/** The rank that is asked for, or the only one; null where the request has been refused. */
function rankOf(
  index: IndexSource,
  query: URLSearchParams,
  response: ServerResponse,
): IndexedRank | null {
  const ranks = index.indexedRanks();
  const text = query.get('rank');
  if (ranks.length === 0) {
    sendNoIndex(response);
    return null;
  }
  const rank =
    text === null && ranks.length === 1
      ? ranks[0]
      : ranks.find(({ dpRank }) => text !== null && DP_RANK.test(text) && dpRank === Number(text));
  if (rank !== undefined) return rank;
  const message = `Give rank, one of ${ranks.map(({ dpRank }) => dpRank).join(', ')}`;
  sendError(response, text === null ? 400 : 404, 'no_such_rank', message);
  return null;
}

function sendNoIndex(response: ServerResponse): void {
  sendError(response, 404, 'no_index', 'This relay keeps no index; start it without --no-indexer');
}
