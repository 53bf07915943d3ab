/**
 * RequestBodies: reads bodies of requests whole, never more of them at a time than a budget allows.
 *
 * Bounds   bytes of one body; bytes of all that are being read, by what each of them says it has.
 */
import type { IncomingMessage } from 'node:http';

export type BodyFault = 'oversize' | 'busy' | 'incomplete';

export class RequestBodies {
  readonly #maxBytes: number;
  readonly #budgetBytes: number;
  #reserved = 0;

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
    const declared = this.declared(request);
    if (declared === null) return 'oversize';
    if (this.#reserved + declared > this.#budgetBytes) return 'busy';
    this.#reserved += declared;
    try {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > this.#maxBytes) return 'oversize';
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    } catch {
      return 'incomplete';
    } finally {
      this.#reserved -= declared;
    }
  }
}
