/**
 * The registry behind `/metrics`: Dynamo's publisher counters, the relay's own metrics and Node's
 * defaults, all read at the scrape from what the worker hands in.
 *
 * Exposes  only finite numbers, and a family only once it has a series.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { registerChunkMetrics } from './chunk-families.ts';
import { registerCoordinatorMetrics } from './coordinator-families.ts';
import { registerDiscoveryMetrics } from './discovery-families.ts';
import { registerDynamoMetrics } from './dynamo-metrics.ts';
import { registerKvrelayMetrics } from './kvrelay-metrics.ts';
import { registerLmcacheSource } from './lmcache-source-metrics.ts';
import { registerLoadMetrics } from './load-metrics.ts';
import type { MetricsSource } from './metrics-source.ts';
import { registerRecoveryMetrics } from './recovery-metrics.ts';
import { registerSourceMetrics } from './source-families.ts';

/** Gauges by the name of a counter, which promtool refuses; each is a sum that its labelled twin has. */
const MISNAMED_DEFAULTS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const;

export function createRegistry(source: MetricsSource): Registry {
  const registry = new FiniteRegistry();
  registerDynamoMetrics(registry, source);
  registerKvrelayMetrics(registry, source);
  registerDiscoveryMetrics(registry, source);
  registerLoadMetrics(registry, source);
  registerRecoveryMetrics(registry, source);
  registerSourceMetrics(registry, source);
  registerChunkMetrics(registry, source);
  registerLmcacheSource(registry, () => source.lmcache());
  registerCoordinatorMetrics(registry, () => source.coordinator());
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED_DEFAULTS) registry.removeSingleMetric(name);
  return registry;
}

/** In prom-client's spelling. Node's defaults have some while the loop delay has no samples. */
const NON_FINITE_SAMPLE = / (?:Nan|[+-]Inf)$/;

/** How long a page's making holds the event loop, above one family of it. */
const SLICE_MS = 1;

class FiniteRegistry extends Registry {
  override async metrics(): Promise<string> {
    const families: string[] = [];
    let sliceStartMs = performance.now();
    for (const { name } of this.getMetricsAsArray()) {
      const family = finiteFamily(await this.getSingleMetricAsString(name));
      if (hasSample(family)) families.push(family);
      if (performance.now() - sliceStartMs < SLICE_MS) continue;
      await nextTurn();
      sliceStartMs = performance.now();
    }
    return `${families.join('\n\n')}\n`;
  }
}

function finiteFamily(family: string): string {
  const lines = family.split('\n');
  return lines.filter((line) => line.startsWith('#') || !NON_FINITE_SAMPLE.test(line)).join('\n');
}

function hasSample(family: string): boolean {
  return family.split('\n').some((line) => !line.startsWith('#'));
}
