/** Responses: how an answer is written, with the headers that keep a browser from misusing it. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

const JSON_TYPE = 'application/json; charset=utf-8';

/** For all but the page: such an answer, opened as a document, may load and run nothing. */
const CLOSED_POLICY = "default-src 'none'; frame-ancestors 'none'";

/** No CORS header on purpose: other origins may not read a relay's state. */
export function setSecurityHeaders(response: ServerResponse): void {
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Security-Policy', CLOSED_POLICY);
  response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  response.setHeader('Referrer-Policy', 'no-referrer');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('X-Frame-Options', 'DENY');
}

export function sendText(
  response: ServerResponse,
  statusCode: number,
  contentType: string,
  text: string,
  headers: OutgoingHttpHeaders = {},
): void {
  response.writeHead(statusCode, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function sendJson(
  response: ServerResponse,
  statusCode: number,
  body: object,
  headers: OutgoingHttpHeaders = {},
): void {
  sendText(response, statusCode, JSON_TYPE, `${jsonText(body)}\n`, headers);
}

/** `error` is stable; `message` says what to do about it. */
export function sendError(
  response: ServerResponse,
  statusCode: number,
  error: string,
  message: string,
  headers: OutgoingHttpHeaders = {},
): void {
  sendJson(response, statusCode, { error, message }, headers);
}

/** One line of JSON. A bigint becomes a decimal string: as a JSON number readers would round it. */
export function jsonText(body: object): string {
  return JSON.stringify(body, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}
