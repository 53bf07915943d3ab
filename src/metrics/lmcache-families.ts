/**
 * The metrics that LMCache's own subscribers make of its bus, as its Prometheus page has them: name, meter
 * (`otel_scope_name`), help.
 *
 * Source  LMCache 0.5.1 to 0.5.6.
 */
import { LMCACHE_BLEND_COUNTERS } from './lmcache-blend-counters.ts';
import { LMCACHE_MP_COUNTERS } from './lmcache-mp-counters.ts';

export type LmcacheFamily = readonly [name: string, scope: string, help: string];

export type LmcacheCounter = keyof typeof LMCACHE_BLEND_COUNTERS | keyof typeof LMCACHE_MP_COUNTERS;
export const LMCACHE_COUNTERS: Readonly<Record<LmcacheCounter, LmcacheFamily>> = {
  ...LMCACHE_BLEND_COUNTERS,
  ...LMCACHE_MP_COUNTERS,
};
