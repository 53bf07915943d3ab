/**
 * Model card: what a worker tells routers of itself, as far as it decides whether they take its events.
 *
 * Model   card_json {kv_cache_block_size (0: unknown), runtime_config {data_parallel_start_rank,
 *         data_parallel_size, kv_state_endpoint (absent: the endpoint that is served)}}
 * Source  ai-dynamo/dynamo 1.6.1; everything else in it is not looked at.
 */
import { z } from 'zod';
import type { KvEndpoint } from './discovery-keys.ts';
import { parseLosslessJson } from './lossless-json.ts';

export interface ModelCard {
  /** Null: it does not say. */
  readonly blockSize: number | null;
  readonly dpRank: number;
  readonly dpSize: number;
  /** Null: the endpoint that is served. */
  readonly kvStateEndpoint: KvEndpoint | null;
}

const U32 = z.number().int().min(0).max(0xffff_ffff);

const shape = z.object({
  type: z.literal('Model'),
  card_json: z.object({
    kv_cache_block_size: U32.nullish(),
    runtime_config: z.object({
      data_parallel_start_rank: U32.nullish(),
      data_parallel_size: U32.nullish(),
      kv_state_endpoint: z
        .object({ namespace: z.string(), component: z.string(), name: z.string() })
        .nullish(),
    }),
  }),
});

/** Null where it is no card. */
export function readModelCard(text: string): ModelCard | null {
  let json: unknown;
  try {
    json = parseLosslessJson(text);
  } catch {
    return null;
  }
  const card = shape.safeParse(json).data?.card_json;
  if (card === undefined) return null;
  const { runtime_config: runtime } = card;
  const named = runtime.kv_state_endpoint;
  return {
    blockSize: card.kv_cache_block_size || null,
    dpRank: runtime.data_parallel_start_rank ?? 0,
    dpSize: runtime.data_parallel_size ?? 1,
    kvStateEndpoint: named
      ? { namespace: named.namespace, component: named.component, endpoint: named.name }
      : null,
  };
}
