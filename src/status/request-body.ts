/** A request's body as text. */
import type { IncomingMessage } from 'node:http';

/** Null where it has more than `maxBytes`; what is over is not read. Throws where the client ends early. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | null> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > maxBytes) return null;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
