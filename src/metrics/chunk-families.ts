/** What is made of LMCache's chunks at the routers; there only where chunks are placed. */
import type { Registry } from 'prom-client';
import type { ChunkReading, MetricsSource } from './metrics-source.ts';
import { scrapedCounter, scrapedGauge } from './scraped.ts';

type Row = readonly [name: string, help: string, read: (reading: ChunkReading) => number];

const GAUGES: readonly Row[] = [
  ['chunk_placed_blocks', 'Blocks of chunks that routers are told of', (r) => r.placedBlocks],
  ['chunks', 'Chunks that are known, held or not', (r) => r.chunks],
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
  const forgotten = {
    name: 'kvrelay_chunk_forgotten_total',
    help: 'What is needed to place chunks and was forgotten for want of room',
    labelNames: ['what'] as const,
  };
  scrapedCounter(registry, forgotten, (add) => {
    for (const [what, count] of Object.entries(source.chunks()?.forgotten ?? {})) {
      add({ what }, count);
    }
  });
}
