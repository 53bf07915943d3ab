/** An HTTP server that answers what a test says, and remembers what it was asked. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

type Answer = (response: ServerResponse, url: URL) => void | Promise<void>;

export interface HttpStub {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** `GET /path?query`, and behind it the body where there is one. */
  readonly requests: readonly string[];
}

/** Answers by path, without the query; any other path is a bare 404. */
export async function startHttpStub(answers: Readonly<Record<string, Answer>>): Promise<HttpStub> {
  const requests: string[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = Buffer.concat(await request.toArray()).toString();
    requests.push(`${request.method} ${request.url}${body && ` ${body}`}`);
    const url = new URL(request.url ?? '', 'http://stub');
    const answer = answers[url.pathname];
    if (answer === undefined) response.writeHead(404).end('<h1>Not Found</h1>');
    else await answer(response, url);
  };
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export function jsonAnswer(value: object, status = 200): Answer {
  return (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(`${JSON.stringify(value)}\n`);
  };
}
