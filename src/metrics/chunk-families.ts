/** What is made of LMCache's chunks at the routers; there only where chunks are placed. */
import type { Registry } from 'prom-client';
import type { ChunkReading, MetricsSource } from './metrics-source.ts';
import { scrapedCounter, scrapedGauge } from './scraped.ts';

type Row = readonly [name: string, help: string, read: (reading: ChunkReading) => number];

const GAUGES: readonly Row[] = [
  ['chunk_placed_blocks', 'Blocks of chunks that routers are told of', (r) => r.placedBlocks],
  ['chunks', 'Chunks that are known, held or not', (r) => r.chunks],
];

const COUNTERS: readonly Row[] = [
  [
    'chunk_forgotten_names_total',
    'Blocks of the engine whose place was forgotten for want of room',
    (r) => r.forgottenNames,
  ],
  [
    'chunk_forgotten_salts_total',
    'Chunks of which it was forgotten for want of room that they are under a salt',
    (r) => r.forgottenSalts,
  ],
];

export function registerChunkMetrics(registry: Registry, source: MetricsSource): void {
  for (const [name, help, read] of GAUGES) {
    scrapedGauge(registry, { name: `kvrelay_${name}`, help, labelNames: [] }, (add) => {
      const reading = source.chunks();
      if (reading !== null) add({}, read(reading));
    });
  }
  const waiting = {
    name: 'kvrelay_chunks_waiting',
    help: 'Chunks that are held and not placed, as their tokens or the chunk before are not known',
    labelNames: ['reason'] as const,
  };
  scrapedGauge(registry, waiting, (add) => {
    for (const [reason, count] of Object.entries(source.chunks()?.waiting ?? {})) {
      add({ reason }, count);
    }
  });
  const refused = {
    name: 'kvrelay_chunks_refused_total',
    help: 'Stores of chunks of which nothing is made at the routers',
    labelNames: ['reason'] as const,
  };
  scrapedCounter(registry, refused, (add) => {
    for (const [reason, count] of Object.entries(source.chunks()?.refused ?? {})) {
      add({ reason }, count);
    }
  });
  for (const [name, help, read] of COUNTERS) {
    scrapedCounter(registry, { name: `kvrelay_${name}`, help, labelNames: [] }, (add) => {
      const reading = source.chunks();
      if (reading !== null) add({}, read(reading));
    });
  }
}
