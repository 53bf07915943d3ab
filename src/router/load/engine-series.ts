/**
 * The load of an engine's ranks, from the series that its metrics page names.
 *
 * vllm    usage `vllm:kv_cache_usage_perc` (0.9.0: `vllm:gpu_cache_usage_perc`), 0 … 1
 *         total label `num_gpu_blocks` of `vllm:cache_config_info`: of all engines of the page together
 *         rank  label `engine`
 * sglang  usage `sglang:token_usage`, 0 … 1
 *         total `sglang:max_total_num_tokens`, of one rank
 *         rank  label `dp_rank`, absent without data parallelism
 *
 * Blocks  usage × total, as Dynamo's own workers of these engines compute it: rounded down to blocks, or
 *         down to tokens and these up to blocks.
 * Source  vLLM 0.9.0 to 0.33.0, v1/metrics/loggers.py; SGLang 0.5.6 to 0.5.23, metrics collector.
 */
import type { LoadFault } from '../../metrics/load-metrics.ts';
import { type Sample, samplesOf } from './exposition.ts';

export const LOAD_ENGINES = ['vllm', 'sglang'] as const;
export type LoadEngine = (typeof LOAD_ENGINES)[number];

export interface LoadRanks {
  readonly engine: LoadEngine;
  readonly dpRank: number;
  readonly dpSize: number;
  /** Tokens a block as routers count them. */
  readonly blockSize: number;
}

export interface LoadReading {
  /** Used blocks of each rank, first rank first; null: unknown. */
  readonly usedBlocks: readonly (number | null)[];
  /** Why a rank is unknown; null where none is. */
  readonly fault: LoadFault | null;
}

/** What one rank of the page says; null where the value is none that could be true. */
interface RankLoad {
  usage: number | null | undefined;
  total: number | null | undefined;
}

export function readLoad(page: string, ranks: LoadRanks): LoadReading {
  const loads = ranks.engine === 'vllm' ? vllmLoads(page, ranks.dpSize) : sglangLoads(page);
  const unknown = new Array<null>(ranks.dpSize).fill(null);
  if (loads === null) return { usedBlocks: unknown, fault: 'too_many_lines' };
  let fault: LoadFault | null = null;
  const usedBlocks = unknown.map((_, offset) => {
    const load = loadOf(loads, ranks, offset);
    const used = usedBlocksOf(load, ranks);
    if (used === undefined) fault ??= 'missing_series';
    if (used === null) fault = 'bad_value';
    return used ?? null;
  });
  return { usedBlocks, fault };
}

/** Under its own number; the only engine of a page is the only rank, whatever number it gives itself. */
function loadOf(
  loads: ReadonlyMap<number, RankLoad>,
  { dpRank, dpSize }: LoadRanks,
  offset: number,
): RankLoad | undefined {
  const own = loads.get(dpRank + offset);
  if (own !== undefined || dpSize > 1 || loads.size > 1) return own;
  return [...loads.values()][0];
}

/** Undefined: not told; null: told, but it cannot be true. */
function usedBlocksOf(
  load: RankLoad | undefined,
  { engine, blockSize }: LoadRanks,
): number | null | undefined {
  if (load?.usage === undefined || load.total === undefined) return undefined;
  const { usage, total } = load;
  if (usage === null || total === null) return null;
  const used = Math.floor(usage * total);
  return engine === 'vllm' ? used : Math.ceil(used / blockSize);
}

function vllmLoads(page: string, dpSize: number): Map<number, RankLoad> | null {
  const names = ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'] as const;
  const samples = samplesOf(page, [...names, 'vllm:cache_config_info']);
  if (samples === null) return null;
  const loads = new Map<number, RankLoad>();
  const usages = names.map((name) => samples.get(name) ?? []).find(({ length }) => length > 0);
  for (const sample of usages ?? []) noteUsage(loads, rankOf(sample, 'engine'), sample.value);
  const engineCount = loads.size;
  // Before 0.10 the engines of one front end hide each other, and the sum cannot be shared out.
  if (engineCount < dpSize) return loads;
  for (const sample of samples.get('vllm:cache_config_info') ?? []) {
    const load = loads.get(rankOf(sample, 'engine') ?? Number.NaN);
    const text = sample.labels.get('num_gpu_blocks');
    // `None` before the engine has measured its memory.
    if (load === undefined || text === undefined || text === 'None') continue;
    const blocks = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    // One front end adds up the blocks of all its engines, and shows the sum with each of them.
    load.total = positive(Math.floor(blocks / engineCount));
  }
  return loads;
}

function sglangLoads(page: string): Map<number, RankLoad> | null {
  const usages = 'sglang:token_usage';
  const totals = 'sglang:max_total_num_tokens';
  const samples = samplesOf(page, [usages, totals]);
  if (samples === null) return null;
  const loads = new Map<number, RankLoad>();
  for (const sample of samples.get(usages) ?? [])
    noteUsage(loads, rankOf(sample, 'dp_rank', 0), sample.value);
  for (const sample of samples.get(totals) ?? []) {
    const load = loads.get(rankOf(sample, 'dp_rank', 0) ?? Number.NaN);
    if (load !== undefined) load.total = positive(sample.value);
  }
  return loads;
}

/** A rank may have several samples (one a tensor-parallel rank, on request): the fullest counts. */
function noteUsage(loads: Map<number, RankLoad>, rank: number | null, value: number): void {
  if (rank === null) return;
  const load = loads.get(rank) ?? { usage: undefined, total: undefined };
  const isUsage = value >= 0 && value <= 1;
  if (!isUsage || load.usage === null) load.usage = null;
  else load.usage = Math.max(load.usage ?? 0, value);
  loads.set(rank, load);
}

function rankOf({ labels }: Sample, label: string, fallback?: number): number | null {
  const text = labels.get(label);
  if (text === undefined) return fallback ?? null;
  return /^\d{1,10}$/.test(text) ? Number(text) : null;
}

function positive(total: number): number | null {
  return total >= 1 && total <= Number.MAX_SAFE_INTEGER ? total : null;
}
