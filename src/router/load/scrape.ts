/** One look at an engine's metrics page over HTTP, of at most MAX_PAGE_BYTES. */
import { HttpGetError, httpGet } from '../../connections/http-get.ts';
import { KvRelayError } from '../../errors.ts';
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
  const limits = { timeoutMs, maxBytes: MAX_PAGE_BYTES, stop };
  try {
    // A connection of its own: an engine that restarts leaves no dead one behind.
    const own = { agent: null, accept: 'text/plain; version=0.0.4' };
    return (await httpGet(url, { ...limits, ...own })).toString('utf8');
  } catch (error) {
    if (!(error instanceof HttpGetError)) throw error;
    throw new ScrapeError(error.fault, error.message);
  }
}
