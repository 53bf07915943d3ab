/** One router event as a line, for `kvrelay inspect` and `query`: the same from MessagePack and from JSON. */
import { z } from 'zod';
import { STORAGE_TIERS } from '../protocol/storage-tier.ts';
import type { Line } from './inspect-line.ts';

/** What a router event has to be; `u64` reads a number of 64 bits as its decimal text. */
export function routerEventShape(u64: z.ZodType<string>): z.ZodType<RouterEvent> {
  const block = z.object({
    block_hash: u64,
    tokens_hash: u64,
    mm_extra_info: z.object({ mm_objects: z.array(z.unknown()) }).nullish(),
  });
  return z.object({
    worker_id: u64,
    storage_tier: z.enum(STORAGE_TIERS),
    session_id: z.string().nullish(),
    event: z.object({
      event_id: u64,
      dp_rank: z.int(),
      data: z.union([
        z.literal('cleared'),
        z.object({ removed: z.object({ block_hashes: z.array(u64) }) }),
        z.object({ stored: z.object({ parent_hash: u64.nullable(), blocks: z.array(block) }) }),
      ]),
    }),
  });
}

interface StoredBlock {
  readonly block_hash: string;
  readonly tokens_hash: string;
  readonly mm_extra_info?: { readonly mm_objects: readonly unknown[] } | null | undefined;
}

export interface RouterEvent {
  readonly worker_id: string;
  readonly storage_tier: (typeof STORAGE_TIERS)[number];
  readonly session_id?: string | null | undefined;
  readonly event: {
    readonly event_id: string;
    readonly dp_rank: number;
    readonly data:
      | 'cleared'
      | { readonly removed: { readonly block_hashes: readonly string[] } }
      | {
          readonly stored: {
            readonly parent_hash: string | null;
            readonly blocks: readonly StoredBlock[];
          };
        };
  };
}

export function routerEventLine({ worker_id, storage_tier, session_id, event }: RouterEvent): Line {
  const { data } = event;
  const stored = data !== 'cleared' && 'stored' in data ? data.stored : null;
  const removed = data !== 'cleared' && 'removed' in data ? data.removed : null;
  const hashes = stored?.blocks.map(({ block_hash }) => block_hash) ?? removed?.block_hashes;
  const objects = stored?.blocks.flatMap(({ mm_extra_info }) => mm_extra_info?.mm_objects ?? []);
  return {
    rank: event.dp_rank,
    event_id: event.event_id,
    type: stored !== null ? 'stored' : removed !== null ? 'removed' : 'cleared',
    ...(hashes !== undefined && { hashes }),
    ...(stored !== null && { parent: stored.parent_hash }),
    tier: storage_tier,
    ...(hashes !== undefined && { blocks: hashes.length }),
    ...(stored !== null && { tokens_hashes: stored.blocks.map(({ tokens_hash }) => tokens_hash) }),
    ...(objects !== undefined && objects.length > 0 && { images: objects.length }),
    ...(session_id != null && { session: session_id }),
    worker: worker_id,
  };
}
