/**
 * One look at an engine's metrics page over HTTP.
 *
 * Bounds   MAX_PAGE_BYTES, and one time limit for all of it; no redirect is followed and no
 *          compression offered, so that what arrives is what is read.
 */
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { KvRelayError, messageOf } from '../../errors.ts';
import type { LoadFault } from '../../metrics/load-metrics.ts';

export const MAX_PAGE_BYTES: number = 4 << 20;

/** The engine's metrics page could not be had; `fault` is its label. */
export class ScrapeError extends KvRelayError {
  readonly code = 'KVR_ENGINE_METRICS';
  readonly fault: LoadFault;

  constructor(fault: LoadFault, message: string) {
    super(message, { remedy: 'Check --engine-metrics, or leave it out' });
    this.fault = fault;
  }
}

/** The page's text. Rejects with `ScrapeError` alone, also once `stop` is aborted. */
export async function scrape(url: string, timeoutMs: number, stop: AbortSignal): Promise<string> {
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
    const response = await open(url, ended.signal);
    if (response.statusCode !== 200) {
      response.destroy();
      throw new ScrapeError('status', `HTTP status ${response.statusCode}`);
    }
    return await textOf(response);
  } catch (error) {
    if (error instanceof ScrapeError) throw error;
    if (isLate) throw new ScrapeError('timeout', `no page within ${timeoutMs} ms`);
    throw new ScrapeError('unreachable', messageOf(error));
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', end);
  }
}

function open(url: string, signal: AbortSignal): Promise<IncomingMessage> {
  const get = url.startsWith('https:') ? getHttps : getHttp;
  const headers = { accept: 'text/plain; version=0.0.4', 'accept-encoding': 'identity' };
  return new Promise((resolve, reject) => {
    // A connection of its own: an engine that restarts leaves no dead one behind.
    get(url, { agent: false, signal, headers }, resolve).on('error', reject);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > MAX_PAGE_BYTES)
      throw new ScrapeError('too_large', `the page has more than ${MAX_PAGE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
