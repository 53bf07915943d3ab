/**
 * RelayClient: asks one relay over HTTP.
 *
 * Bounds   the wait for each part of an answer, the bytes of one that is held, the length of a line.
 * Streams  lines come as they arrive, and no further while the caller is busy with one.
 * Throws   QueryError: one line that says what is there in place of an answer.
 */
import { type IncomingMessage, request } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import { z } from 'zod';
import { formatHttpAddress, type HttpAddress } from '../config/addresses.ts';
import { errorCode, KvRelayError, messageOf } from '../errors.ts';

/** There is no answer, or none that can be used. */
export class QueryError extends KvRelayError {
  readonly code = 'KVR_QUERY';
  /** Whether the question as it was put is what the relay refuses. */
  readonly isUsage: boolean;

  constructor(message: string, remedy: string, isUsage = false) {
    super(message, { remedy });
    this.isUsage = isUsage;
  }
}

export interface RelayClientOptions {
  readonly address: HttpAddress;
  readonly timeoutMs: number;
  /** Ends what is under way. */
  readonly ended: AbortSignal;
}

export interface Asked {
  readonly path: string;
  /** JSON; a question without it is a GET. */
  readonly body?: string;
}

/** What came, and what it says. */
export interface Checked<Value> {
  /** JSON. */
  readonly text: string;
  readonly value: Value;
}

/** What one answer may hold; a dump is no such answer. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 64 * 1024;

const GIVE_ADDRESS = 'Give the address of a running relay with --http';

/** How a relay refuses. */
const refusalShape = z.object({ error: z.string(), message: z.string() });
type Refusal = z.infer<typeof refusalShape>;

const CONNECT_PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ECONNRESET: 'the connection was closed without an answer',
};

export class RelayClient {
  readonly #options: RelayClientOptions;
  readonly #name: string;

  constructor(options: RelayClientOptions) {
    this.#options = options;
    this.#name = formatHttpAddress(options.address);
  }

  /** The whole answer, checked. */
  async json<Value>(asked: Asked, shape: z.ZodType<Value>): Promise<Checked<Value>> {
    const response = await this.#ask(asked);
    return this.#checked(await this.#whole(response, MAX_ANSWER_BYTES), shape, asked);
  }

  /** The lines of an answer that has no bound, each checked; as many at a time as arrive at once. */
  async *lines<Value>(asked: Asked, shape: z.ZodType<Value>): AsyncGenerator<Checked<Value>[]> {
    const response = await this.#ask(asked);
    const decoder = new StringDecoder('utf8');
    let rest = '';
    for await (const chunk of this.#chunks(response)) {
      const lines = (rest + decoder.write(chunk)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE_CHARACTERS) throw this.#stranger(asked);
      if (lines.length > 0) yield lines.map((line) => this.#checked(line, shape, asked));
    }
    if (rest !== '') throw this.#broken('ended within a line');
  }

  #checked<Value>(text: string, shape: z.ZodType<Value>, asked: Asked): Checked<Value> {
    const value = shape.safeParse(parsed(text));
    if (!value.success) throw this.#stranger(asked);
    return { text: text.trim(), value: value.data };
  }

  /** Resolves with an answer that is no refusal. */
  async #ask(asked: Asked): Promise<IncomingMessage> {
    const response = await this.#open(asked);
    const { statusCode = 0 } = response;
    if (statusCode === 200) return response;
    const refusal = refusalShape.safeParse(parsed(await this.#whole(response, MAX_REFUSAL_BYTES)));
    if (!refusal.success) throw this.#stranger(asked, ` (HTTP ${statusCode})`);
    throw this.#refused(asked, statusCode, refusal.data);
  }

  #refused(asked: Asked, status: number, { error, message }: Refusal): QueryError {
    const isUsage = status === 400 || error === 'no_such_rank';
    const problem =
      status === 404 && !isUsage
        ? `The relay at ${this.#name} does not answer ${pathOf(asked)}: ${message}`
        : `The relay at ${this.#name} refuses ${pathOf(asked)}: ${message}`;
    return new QueryError(problem, remedyOf(status, isUsage), isUsage);
  }

  #open({ path, body }: Asked): Promise<IncomingMessage> {
    const { address, timeoutMs, ended } = this.#options;
    return new Promise((resolve, reject) => {
      const outgoing = request({
        host: address.host,
        port: address.port,
        path,
        method: body === undefined ? 'GET' : 'POST',
        agent: false,
        signal: ended,
        ...(body !== undefined && {
          headers: {
            'Content-Type': 'application/json',
            'Content-Length': Buffer.byteLength(body),
          },
        }),
      });
      const timer = setTimeout(() => outgoing.destroy(this.#late()), timeoutMs);
      outgoing.once('response', (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      outgoing.on('error', (error) => {
        clearTimeout(timer);
        reject(this.#failure(error));
      });
      outgoing.end(body);
    });
  }

  /** Only the waits count: while the caller is busy, nothing is late. */
  async *#chunks(response: IncomingMessage): AsyncGenerator<Buffer> {
    const { timeoutMs } = this.#options;
    const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    try {
      for (;;) {
        const timer = setTimeout(() => response.destroy(this.#late()), timeoutMs);
        const next = await chunks.next().finally(() => clearTimeout(timer));
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      throw error instanceof QueryError ? error : this.#broken('broke off');
    } finally {
      response.destroy();
    }
  }

  async #whole(response: IncomingMessage, maxBytes: number): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.#chunks(response)) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        const limit = `${maxBytes / 1024} KiB`;
        const remedy = 'Ask for less, such as a range of events with --start and --end';
        throw new QueryError(`The answer of ${this.#name} is longer than ${limit}`, remedy);
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  #failure(error: unknown): QueryError {
    if (error instanceof QueryError) return error;
    const code = errorCode(error);
    if (code.startsWith('HPE_')) {
      return new QueryError(`What listens at ${this.#name} does not speak HTTP`, GIVE_ADDRESS);
    }
    const problem = CONNECT_PROBLEMS[code] ?? messageOf(error);
    return new QueryError(`No relay answers at ${this.#name}: ${problem}`, GIVE_ADDRESS);
  }

  #late(): QueryError {
    const seconds = this.#options.timeoutMs / 1000;
    const remedy = 'See whether it is stopped or overloaded, or raise --timeout-seconds';
    return new QueryError(`${this.#name} did not answer within ${seconds} s`, remedy);
  }

  #broken(how: string): QueryError {
    return new QueryError(
      `The answer of ${this.#name} ${how}: what was printed is not all of it`,
      'See the log of the relay, and ask again',
    );
  }

  #stranger(asked: Asked, detail = ''): QueryError {
    return new QueryError(
      `What answers at ${this.#name} is no kvrelay: its ${pathOf(asked)} has another form${detail}`,
      GIVE_ADDRESS,
    );
  }
}

function remedyOf(status: number, isUsage: boolean): string {
  if (isUsage) return 'Correct the flags';
  if (status === 404) return 'Ask a relay of this version that keeps its local index';
  return status === 503 ? 'Ask again later' : 'See the log of the relay';
}

function pathOf({ path }: Asked): string {
  return path.split('?', 1)[0] ?? path;
}

/** Undefined where the text is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
