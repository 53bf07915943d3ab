/**
 * The status of a relay as text: what it is, its ranks, and what is wrong with them.
 *
 * Reads  what is shown, no more: keys may be added. Names are escaped, they may be anything.
 */
import { z } from 'zod';
import { oneLine } from '../errors.ts';

/** Numbers of 64 bits are text: exact in JSON only so. */
const u64 = z.string().regex(/^\d{1,20}$/);
const count = z.number();
const text = z.string();

const rankShape = z.looseObject({
  dp_rank: z.int(),
  worker_id: u64.nullable(),
  state: text,
  degraded: z.array(z.looseObject({ code: text, message: text, remedy: text })),
  engine: z.looseObject({
    endpoint: text,
    connected: z.boolean(),
    last_seq: u64.nullable(),
    last_batch_age_ms: count.nullable(),
    replay: text,
  }),
  counters: z.looseObject({
    received: count,
    filtered: count,
    published_events: count,
    published_blocks: count,
    lost_batches: count,
    malformed: count,
  }),
  filtered_by_reason: z.record(text, count),
  plane_endpoint: text.nullish(),
  latency_ms: z.looseObject({ p50: count.nullable(), p99: count.nullable() }),
  blocks: z.record(text, count),
  last_event_id: u64.nullable(),
  block_size: z.looseObject({ configured: count.nullable(), seen: z.array(count) }),
});

const statusShape = z.looseObject({
  version: text,
  uptime_s: count,
  compat: text,
  state: text,
  plane: z.looseObject({
    kind: text,
    connected: z.boolean(),
    endpoint: text.nullable(),
    outbox_bytes: count,
    outbox_messages: count,
  }),
  ranks: z.array(rankShape),
});

type Status = z.infer<typeof statusShape>;

/** The text of a status: whole lines. */
export const statusText: z.ZodType<string> = statusShape.transform(textOf);

type Rank = Status['ranks'][number];

function textOf({ version, state, compat, uptime_s, plane, ranks }: Status): string {
  const lines = [
    `kvrelay ${version}: ${state}, ${compat}, up ${uptime_s} s`,
    `plane ${plane.kind} ${plane.endpoint ?? '-'}: ${linked(plane.connected)}, ` +
      `${plane.outbox_messages} messages (${plane.outbox_bytes} bytes) to be confirmed`,
    ...ranks.flatMap(rankLines),
  ];
  return lines.map((line) => `${oneLine(line)}\n`).join('');
}

function rankLines(rank: Rank): string[] {
  const { engine, counters, blocks, latency_ms, block_size, degraded } = rank;
  const worker = rank.worker_id ?? 'unknown';
  const age = engine.last_batch_age_ms;
  const seen = block_size.seen.length === 0 ? 'none yet' : block_size.seen.join(', ');
  const latencies = [latency_ms.p50, latency_ms.p99].map((value) => value ?? '-');
  return [
    `rank ${rank.dp_rank}: ${rank.state}, worker ${worker}, last event ${rank.last_event_id ?? '-'}`,
    `  engine     ${engine.endpoint} ${linked(engine.connected)}, last batch ` +
      `${engine.last_seq ?? '-'}${age === null ? '' : ` ${(age / 1000).toFixed(1)} s ago`}, ` +
      `replay ${engine.replay}`,
    `  events     ${counters.received} in, ${counters.filtered} filtered${counted(rank)}, ` +
      `${counters.published_events} published with ${counters.published_blocks} blocks`,
    `  lost       ${counters.lost_batches} batches, ${counters.malformed} malformed messages`,
    `  blocks     ${listed(blocks)}, of ${block_size.configured ?? '-'} tokens (seen: ${seen})`,
    `  latency    p50 ${latencies[0]} ms, p99 ${latencies[1]} ms`,
    ...(rank.plane_endpoint == null ? [] : [`  published  on ${rank.plane_endpoint}`]),
    ...degraded.map(({ code, message, remedy }) => `  degraded   ${code}: ${message}. ${remedy}`),
  ];
}

function linked(isConnected: boolean): string {
  return isConnected ? 'connected' : 'not connected';
}

function counted({ filtered_by_reason }: Rank): string {
  const reasons = Object.entries(filtered_by_reason).filter(([, count]) => count > 0);
  if (reasons.length === 0) return '';
  return ` (${listed(Object.fromEntries(reasons))})`;
}

/** `device 3, disk 0`. */
function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
