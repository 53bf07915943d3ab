/** Answers of JSON lines, written as they are made. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

export const JSON_LINES_TYPE = 'application/x-ndjson; charset=utf-8';

/** How long a client may leave an answer unread. */
const STALLED_MS = 10_000;

/** Waits until the client has read; ends the answer of one that does not read on. */
export async function drained(response: ServerResponse): Promise<void> {
  const timeout = setTimeout(() => response.destroy(), STALLED_MS);
  const ended = new AbortController();
  const { signal } = ended;
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  } finally {
    clearTimeout(timeout);
    ended.abort();
  }
}
