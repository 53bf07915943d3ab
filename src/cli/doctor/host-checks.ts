/** This host and process: settings, Node, clock, HTTP address, and the engine's metrics page. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { formatHttpAddress } from '../../config/addresses.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { readLoad } from '../../router/load/engine-series.ts';
import { ScrapeError, scrape } from '../../router/load/scrape.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import type { ProbeContext } from './context.ts';

const MIN_NODE_MAJOR = 20;
/** Earlier than this code was written. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** Engines stamp a batch when it leaves. */
const MAX_SKEW_MS = 5000;
const SCRAPE_MS = 3000;

export function settingsCheck({ config }: ProbeContext): Check {
  const { warnings } = config;
  if (warnings.length === 0) return ok('settings', 'they can be used');
  return warn('settings', warnings.join('; '), 'Correct them, or leave them out');
}

/** `version` without its v. */
export function nodeCheck(version: string): Check {
  const major = Number(version.split('.', 1)[0]);
  if (major >= MIN_NODE_MAJOR) return ok('node_version', `Node ${version}`);
  const text = `Node ${version} is older than kvrelay runs on`;
  return fail('node_version', text, `Install Node ${MIN_NODE_MAJOR} or newer`);
}

/** `skewMs`: the engine's clock less ours; null where no batch has told it. */
export function clockCheck(nowMs: number, skewMs: number | null): Check {
  const now = new Date(nowMs).toISOString();
  if (nowMs < EARLIEST_MS) {
    return fail('clock', `it is ${now} on this host`, 'Set the clock: records expire by it');
  }
  if (skewMs === null || Math.abs(skewMs) <= MAX_SKEW_MS) {
    const agreement = skewMs === null ? '' : ", and the engine's clock agrees";
    return ok('clock', `it is ${now}${agreement}`);
  }
  const seconds = Math.abs(skewMs / 1000).toFixed(0);
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  const text = `batches of the engine are stamped ${seconds} s ${direction} our clock, ${now}`;
  return warn('clock', text, 'Set both clocks by NTP; a recording that is played has old times');
}

export async function httpCheck({ config, relay }: ProbeContext): Promise<Check> {
  const name = 'http_address';
  const { http } = config;
  if (http === null) return skipped(name, 'HTTP is off');
  const shown = formatHttpAddress(http);
  if (relay !== null) return ok(name, `kvrelay ${relay.version} runs at ${shown} (${relay.state})`);
  const server = createServer();
  try {
    server.listen({ host: http.host, port: http.port });
    await once(server, 'listening');
    return ok(name, `${shown} can be bound`);
  } catch (error) {
    const problem = errorCode(error) === 'EADDRINUSE' ? 'another service has it' : messageOf(error);
    const remedy =
      'Give another address with --http HOST:PORT (port 0 = a free one), or --http off';
    return fail(name, `${shown} cannot be bound: ${problem}`, remedy);
  } finally {
    server.close();
  }
}

export async function engineMetricsCheck({ config, ended }: ProbeContext): Promise<Check> {
  const name = 'engine_metrics';
  const { engineMetrics, engine, dpRank, dpSize, blockSize } = config;
  if (engineMetrics === null || engine === 'trtllm' || engine === 'none')
    return skipped(name, 'none is given');
  try {
    const page = await scrape(engineMetrics, SCRAPE_MS, ended);
    const { fault } = readLoad(page, { engine, dpRank, dpSize, blockSize });
    if (fault === null) return ok(name, `${engineMetrics} names the load of every rank`);
    const remedy = `Check --engine and --dp-rank, and that this is the metrics page of a ${engine} engine`;
    return fail(name, `${engineMetrics} does not tell the load of every rank: ${fault}`, remedy);
  } catch (error) {
    if (!(error instanceof ScrapeError)) throw error;
    return fail(name, `${engineMetrics}: ${error.message}`, `${error.remedy}`);
  }
}
