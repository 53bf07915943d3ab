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
  last_event_id: u64.nullish(),
  /** Where the next page begins; null where this is the last. */
  next_event_id: u64.nullish(),
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

const objectShape = z.object({
  source: z.string(),
  backend_id: z.string(),
  tenant_id: z.string(),
  object_key: z.string(),
  media: z.array(z.string()),
  group_id: z.string().optional(),
  model_name: z.string().optional(),
});

const matchShape = z.object({
  ranks: z.array(z.object({ dp_rank: z.int(), blocks: z.record(z.string(), z.int()) })),
});

/** One page of events. */
export interface EventPage {
  /** `events`, or why there are none. */
  readonly kind: string;
  readonly lastEventId: string | null;
  /** Null where this is the last. */
  readonly nextEventId: string | null;
  /** About the answer as a whole. */
  readonly headText: string;
  /** A line an event, made as they are wanted. */
  readonly eventTexts: Iterable<string>;
}

export const eventPage: z.ZodType<EventPage> = eventsShape.transform(
  ({ events, next_event_id = null, ...head }) => ({
    kind: head.kind,
    lastEventId: head.last_event_id ?? null,
    nextEventId: next_event_id,
    headText: textLine({ source: 'answer', ...scalarsOf(head) }),
    eventTexts: textsOf(events ?? []),
  }),
);

function scalarsOf(head: Readonly<Record<string, unknown>>): Line {
  const fields = Object.entries(head).flatMap(([key, value]) =>
    typeof value === 'string' || typeof value === 'number' ? [[key, value] as const] : [],
  );
  return Object.fromEntries(fields);
}

function* textsOf(events: readonly RouterEvent[]): Generator<string> {
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

/** One line of a listing of objects. Keys may be anything, so what a terminal would act on is escaped. */
export const objectLine: z.ZodType<Line> = objectShape.transform(
  ({ source, backend_id, tenant_id, object_key, media, group_id, model_name }) => ({
    source: 'object',
    store: source,
    backend: backend_id,
    tenant: tenant_id,
    media: media.join(','),
    key: object_key,
    ...(group_id !== undefined && { group: group_id }),
    ...(model_name !== undefined && { model: model_name }),
  }),
);

/** One line a rank. */
export const matchText: z.ZodType<string> = matchShape.transform(({ ranks }) =>
  ranks
    .map(({ dp_rank, blocks }) => textLine({ source: 'match', rank: dp_rank, ...blocks }))
    .join(''),
);
