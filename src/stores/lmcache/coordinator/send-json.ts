/** An answer as JSON, in one piece. */
import type { ServerResponse } from 'node:http';

export function sendJson(
  response: ServerResponse,
  status: number,
  value: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(value);
  const length = Buffer.byteLength(text);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': length,
    ...headers,
  });
  response.end(text);
}
