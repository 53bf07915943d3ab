/**
 * What `kvrelay demo` shows: the live line, its form without a terminal, and the summary.
 *
 * Pure but for `LiveDisplay`, which owns the last line of a terminal and nothing else.
 * Width    the live line is always shorter than the terminal is wide: one that wraps could not be
 *          drawn over. It shortens by steps, words first, then figures from the right.
 */
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';
import type { RankStatus, StatusSnapshot } from '../status/status-source.ts';

export interface LiveFigures {
  readonly uptimeS: number;
  readonly batches: number;
  readonly lostBatches: number;
  readonly malformed: number;
  readonly eventsIn: number;
  readonly coalesced: number;
  readonly suppressed: number;
  readonly publishedEvents: number;
  readonly publishedBlocks: number;
  readonly blocks: Readonly<Record<StorageTier, number>>;
  readonly latencyMs: { readonly p50: number | null; readonly p99: number | null };
}

/** All ranks together; of the latencies the worst. */
export function liveFigures({ uptime_s, ranks }: StatusSnapshot): LiveFigures {
  const total = (of: (rank: RankStatus) => number): number =>
    ranks.reduce((sum, rank) => sum + of(rank), 0);
  const worst = (of: (rank: RankStatus) => number | null): number | null => {
    const known = ranks.map(of).filter((value) => value !== null);
    return known.length === 0 ? null : Math.max(...known);
  };
  return {
    uptimeS: uptime_s,
    batches: total(batchesOf),
    lostBatches: total((rank) => rank.counters.lost_batches),
    malformed: total((rank) => rank.counters.malformed),
    eventsIn: total((rank) => rank.counters.received),
    coalesced: total((rank) => rank.counters.coalesced),
    suppressed: total((rank) => rank.counters.suppressed_removes),
    publishedEvents: total((rank) => rank.counters.published_events),
    publishedBlocks: total((rank) => rank.counters.published_blocks),
    blocks: {
      device: total((rank) => rank.blocks.device),
      host_pinned: total((rank) => rank.blocks.host_pinned),
      disk: total((rank) => rank.blocks.disk),
      external: total((rank) => rank.blocks.external),
    },
    latencyMs: {
      p50: worst((rank) => rank.latency_ms.p50),
      p99: worst((rank) => rank.latency_ms.p99),
    },
  };
}

/** The numbers of the demo's engine start at 0 and never start again. */
function batchesOf({ engine, counters }: RankStatus): number {
  return engine.last_seq === null ? 0 : Number(engine.last_seq) + 1 - counters.lost_batches;
}

const RATE_WINDOW_MS = 5000;

/** Events a second over the last five seconds, or since the sample before where that is longer. */
export class RateMeter {
  readonly #samples: { readonly atMs: number; readonly count: number }[] = [];

  observe(count: number, atMs: number): number {
    const samples = this.#samples;
    samples.push({ atMs, count });
    while (samples[1] !== undefined && atMs - samples[1].atMs >= RATE_WINDOW_MS) samples.shift();
    const first = samples[0];
    if (first === undefined || atMs <= first.atMs) return 0;
    return ((count - first.count) * 1000) / (atMs - first.atMs);
  }
}

/** What stands above the live line: addresses, and how to end it. */
export function introduction(
  engine: string,
  status: StatusSnapshot | null,
  httpUrl: string | null,
): string {
  const title = `kvrelay demo: relays a recorded ${engine} event stream until Ctrl-C.`;
  const page =
    httpUrl === null
      ? ''
      : `  status page  ${httpUrl}/\n` +
        '  beside it    /metrics  /health/ready  /health/live  /api/status\n';
  const plane = [status?.plane.kind, status?.plane.endpoint].filter(Boolean).join(' ');
  return `${title}\n\n${page}  event plane  ${plane}\n\n`;
}

/** `columns`: of the terminal; the line has fewer characters. */
export function liveLine(figures: LiveFigures, eventsPerSecond: number, columns: number): string {
  const rate = Math.round(eventsPerSecond);
  const room = Math.max(columns - 1, 0);
  for (const words of [fullWords, fewWords]) {
    const line = words(figures, rate).join('  ');
    if (line.length <= room) return line;
  }
  const parts = shortWords(figures, rate);
  const labelled = [...parts.slice(0, -1), `p50 ${parts.at(-1)}`].join(' ');
  if (labelled.length <= room) return labelled;
  while (parts.join(' ').length > room) parts.pop();
  return parts.join(' ');
}

/** Without a terminal: one line an interval, each complete and with its time. */
export function plainLine(figures: LiveFigures, eventsPerSecond: number): string {
  const words = fullWords(figures, Math.round(eventsPerSecond)).join('  ');
  return `${duration(figures.uptimeS)}  ${words}`;
}

function fullWords(figures: LiveFigures, rate: number): string[] {
  const { blocks, latencyMs } = figures;
  return [
    `batches ${grouped(figures.batches)}`,
    `events in ${grouped(figures.eventsIn)}`,
    `coalesced ${grouped(figures.coalesced)}`,
    `suppressed ${grouped(figures.suppressed)}`,
    `published ${grouped(figures.publishedEvents)}`,
    `live blocks ${STORAGE_TIERS.map((tier) => `${tier} ${grouped(blocks[tier])}`).join(' ')}`,
    `rate ${grouped(rate)} events/s`,
    `latency p50 ${inMs(latencyMs.p50)} p99 ${inMs(latencyMs.p99)}`,
  ];
}

function fewWords(figures: LiveFigures, rate: number): string[] {
  return [
    `batches ${grouped(figures.batches)}`,
    `in ${grouped(figures.eventsIn)}`,
    `coalesced ${grouped(figures.coalesced)}`,
    `suppressed ${grouped(figures.suppressed)}`,
    `published ${grouped(figures.publishedEvents)}`,
    `live ${heldBlocks(figures, grouped)}`,
    `${grouped(rate)} events/s`,
    `p50 ${inMs(figures.latencyMs.p50)}`,
  ];
}

/** Fits 80 columns, where the engine has one tier, up to figures of any size. */
function shortWords(figures: LiveFigures, rate: number): string[] {
  return [
    `batches ${compact(figures.batches)}`,
    `in ${compact(figures.eventsIn)}`,
    `coal ${compact(figures.coalesced)}`,
    `supp ${compact(figures.suppressed)}`,
    `pub ${compact(figures.publishedEvents)}`,
    heldBlocks(figures, compact),
    `${compact(rate)}/s`,
    inMs(figures.latencyMs.p50),
  ];
}

/** The device tier always, another one only where it holds something. */
function heldBlocks({ blocks }: LiveFigures, shown: (count: number) => string): string {
  return STORAGE_TIERS.filter((tier) => tier === 'device' || blocks[tier] > 0)
    .map((tier) => `${tier} ${shown(blocks[tier])}`)
    .join(' ');
}

export function summary(figures: LiveFigures): string {
  const { latencyMs } = figures;
  return [
    `kvrelay demo relayed for ${duration(figures.uptimeS)}:`,
    `  batches  ${grouped(figures.batches)} in, ${grouped(figures.lostBatches)} lost, ` +
      `${grouped(figures.malformed)} malformed`,
    `  events   ${grouped(figures.eventsIn)} in, ${grouped(figures.coalesced)} coalesced, ` +
      `${grouped(figures.publishedEvents)} published`,
    `  blocks   ${grouped(figures.publishedBlocks)} published, ` +
      `${grouped(figures.suppressed)} removes suppressed, live at the end: ` +
      heldBlocks(figures, grouped),
    `  latency  p50 ${inMs(latencyMs.p50)}, p99 ${inMs(latencyMs.p99)}`,
    '',
  ].join('\n');
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** At most five characters up to 10^12: 9999, 12.3k, 123k, 1.23M. */
function compact(count: number): string {
  if (count < 10_000) return String(count);
  const units = ['k', 'M', 'G', 'T'];
  let value = count / 1000;
  while (value >= 999.5 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  return `${Number(value.toPrecision(3))}${units[0]}`;
}

function inMs(milliseconds: number | null): string {
  return milliseconds === null ? '- ms' : `${Number(milliseconds.toPrecision(3))} ms`;
}

function duration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = `${Math.floor(seconds % 60)} s`;
  return minutes === 0 ? rest : `${minutes} min ${rest}`;
}

export interface Terminal {
  write(text: string): unknown;
}

/** To the first column, and nothing from there on, however a narrower window wrapped the line. */
const ERASE = '\r\x1b[J';

/**
 * LiveDisplay: keeps one line at the end of a terminal. The cursor waits at its start, so that what
 * others write (the terminal's own ^C) lies on it, and the next drawing removes it.
 */
export class LiveDisplay {
  readonly #out: Terminal;
  #line = '';

  constructor(out: Terminal) {
    this.#out = out;
  }

  draw(line: string): void {
    this.#line = line;
    this.#out.write(`\r${line}\x1b[J\r`);
  }

  /** Lets `write` put whole lines above the live line. */
  above(write: () => void): void {
    if (this.#line === '') {
      write();
      return;
    }
    this.#out.write(ERASE);
    write();
    this.draw(this.#line);
  }

  /** Takes the line away; the terminal is as if it had not been. */
  clear(): void {
    if (this.#line !== '') this.#out.write(ERASE);
    this.#line = '';
  }
}
