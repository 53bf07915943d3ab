/**
 * The answers of a relay to events, dump and match: read, and turned into lines.
 *
 * Numbers  of 64 bits are text: exact in JSON only so.
 * Keys     may be added, so more of them are no fault.
 */
import { z } from 'zod';
import { STORAGE_TIERS } from '../protocol/storage-tier.ts';
import { type Line, textLine } from './inspect-line.ts';
import { type RouterEvent, routerEventLine, routerEventShape } from './router-event-line.ts';

const u64 = z.string().regex(/^\d{1,20}$/);

const eventsShape = z.looseObject({
  kind: z.string(),
  events: z.array(routerEventShape(u64)).nullish(),
});

const blockShape = z.object({
  worker_id: u64,
  dp_rank: z.int(),
  storage_tier: z.enum(STORAGE_TIERS),
  parent_hash: u64.nullable(),
  block_hash: u64,
  tokens_hash: u64,
});

const matchShape = z.object({
  ranks: z.array(z.object({ dp_rank: z.int(), blocks: z.record(z.string(), z.int()) })),
});

/** One line about the answer, one an event: made as they are wanted. */
export const eventTexts: z.ZodType<Iterable<string>> = eventsShape.transform(
  ({ events, ...head }) => linesOf(head, events ?? []),
);

function* linesOf(
  head: Readonly<Record<string, unknown>>,
  events: readonly RouterEvent[],
): Generator<string> {
  const fields = Object.entries(head).flatMap(([key, value]) =>
    typeof value === 'string' || typeof value === 'number' ? [[key, value] as const] : [],
  );
  yield textLine({ source: 'answer', ...Object.fromEntries(fields) });
  for (const event of events) yield textLine({ source: 'event', ...routerEventLine(event) });
}

/** One line of a dump. */
export const blockLine: z.ZodType<Line> = blockShape.transform((block) => ({
  source: 'block',
  rank: block.dp_rank,
  tier: block.storage_tier,
  hash: block.block_hash,
  parent: block.parent_hash,
  tokens_hash: block.tokens_hash,
  worker: block.worker_id,
}));

/** One line a rank. */
export const matchTexts: z.ZodType<Iterable<string>> = matchShape.transform(({ ranks }) =>
  ranks.map(({ dp_rank, blocks }) => textLine({ source: 'match', rank: dp_rank, ...blocks })),
);
