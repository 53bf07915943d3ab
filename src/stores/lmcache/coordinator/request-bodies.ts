/**
 * RequestBodies: reads bodies of requests whole, never more of them at a time than a budget allows.
 *
 * Bounds   bytes of one body; bytes of all that are being read, by what of them has come: what only says that it will
 *          send much keeps nobody out.
 */
import type { IncomingMessage } from 'node:http';

export type BodyFault = 'oversize' | 'busy' | 'incomplete';

export class RequestBodies {
  readonly #maxBytes: number;
  readonly #budgetBytes: number;
  #heldBytes = 0;

  constructor(maxBytes: number, budgetBytes: number) {
    this.#maxBytes = maxBytes;
    this.#budgetBytes = budgetBytes;
  }

  /** What the request says it has; null where that is more than one body may have. */
  declared({ headers }: IncomingMessage): number | null {
    const length = headers['content-length'];
    if (length === undefined)
      return headers['transfer-encoding'] === undefined ? 0 : this.#maxBytes;
    const bytes = Number(length);
    return bytes <= this.#maxBytes ? bytes : null;
  }

  async read(request: IncomingMessage): Promise<Buffer | BodyFault> {
    if (this.declared(request) === null) return 'oversize';
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        this.#heldBytes += chunk.length;
        if (bytes > this.#maxBytes) return 'oversize';
        if (this.#heldBytes > this.#budgetBytes) return 'busy';
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } catch {
      return 'incomplete';
    } finally {
      this.#heldBytes -= bytes;
    }
  }
}
