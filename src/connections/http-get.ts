/**
 * One HTTP GET whose answer is read whole where its status is 200.
 *
 * Bounds   bytes of the answer, and one time limit for all of it; no redirect is followed and no
 *          compression offered, so that what arrives is what is read.
 * Throws   HttpGetError alone, also once `stop` is aborted.
 */
import { type Agent, get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { KvRelayError, messageOf } from '../errors.ts';

export type HttpGetFault = 'unreachable' | 'timeout' | 'status' | 'too_large';

/** There is no answer, or none that can be read whole. */
export class HttpGetError extends KvRelayError {
  readonly code = 'KVR_HTTP_GET';
  readonly fault: HttpGetFault;

  constructor(fault: HttpGetFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

export interface HttpGetOptions {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly stop: AbortSignal;
  /** Null: a connection of its own. */
  readonly agent: Agent | null;
  /** Media type asked for; absent: any. */
  readonly accept?: string;
}

/** The answer's body. */
export async function httpGet(url: string, options: HttpGetOptions): Promise<Buffer> {
  const { timeoutMs, stop } = options;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, timeoutMs);
  stop.addEventListener('abort', end);
  try {
    stop.throwIfAborted();
    const response = await open(url, ended.signal, options);
    if (response.statusCode !== 200) {
      response.destroy();
      throw new HttpGetError('status', `HTTP status ${response.statusCode}`);
    }
    return await bodyOf(response, options.maxBytes);
  } catch (error) {
    if (error instanceof HttpGetError) throw error;
    if (isLate) throw new HttpGetError('timeout', `no answer within ${timeoutMs} ms`);
    throw new HttpGetError('unreachable', messageOf(error));
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', end);
  }
}

function open(
  url: string,
  signal: AbortSignal,
  { agent, accept }: HttpGetOptions,
): Promise<IncomingMessage> {
  const get = url.startsWith('https:') ? getHttps : getHttp;
  const headers = { 'accept-encoding': 'identity', ...(accept !== undefined && { accept }) };
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: agent ?? false, signal, headers }, resolve);
    request.on('error', reject);
    // A server that would speak another protocol ends it with neither an answer nor an error.
    request.on('close', () => reject(new Error('the connection ended without an answer')));
  });
}

async function bodyOf(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > maxBytes) throw new HttpGetError('too_large', `more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
