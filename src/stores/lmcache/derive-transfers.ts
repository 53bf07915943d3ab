/** Between GPU and L1: transfers by device, their throughput by session and device, and their timed sections. */
import type { BusEvent, PhaseSample } from '../../engines/lmcache/contracts.ts';
import type { LmcacheHistogram } from '../../metrics/lmcache-histograms.ts';
import { amount, type DeriverDeps, type Handlers, labelsOf, NANOGIGA } from './deriver.ts';
import { Pairs } from './pairs.ts';

export function deriveTransfers({ series }: DeriverDeps): Handlers {
  return {
    MP_STORE_SUBMITTED: ({ metadata: { device } }) =>
      series.add('num_submitted_stores', 1, labelsOf({ device })),
    MP_RETRIEVE_SUBMITTED: ({ metadata: { device } }) =>
      series.add('num_submitted_retrieves', 1, labelsOf({ device })),
    MP_STORE_END: ({ metadata: { device } }) =>
      series.add('num_finished_stores', 1, labelsOf({ device })),
    MP_RETRIEVE_END: ({ metadata }) => {
      const { device, retrieved_count, engine_id, model_name, cache_salt } = metadata;
      series.add('num_finished_retrieves', 1, labelsOf({ device }));
      const chunks = amount(retrieved_count);
      if (chunks > 0)
        series.add(
          'num_chunks_loaded',
          chunks,
          labelsOf({ worker_id: engine_id, model_name, cache_salt }),
        );
    },
    MP_TRANSFER_PHASE_SAMPLES: ({ metadata: { samples = [] } }) => {
      for (const sample of samples) addSample(series, sample);
    },
  };
}

type Start = BusEvent<'MP_STORE_START' | 'MP_RETRIEVE_START'>;
type End = BusEvent<'MP_STORE_END' | 'MP_RETRIEVE_END'>;

/** GPU callbacks come in any order: an end before its start pairs with nothing. */
export function deriveTransferThroughput({ series, options, counts }: DeriverDeps): Handlers {
  const stores = new Pairs<null>(options);
  const loads = new Pairs<null>(options);
  counts.pairs.push(stores, loads);
  const begin = (pairs: Pairs<null>, { sessionId, timestamp, metadata }: Start): void => {
    const key = keyOf(sessionId, metadata.device);
    if (key !== null) pairs.start(key, timestamp, null);
  };
  const finish = (pairs: Pairs<null>, name: LmcacheHistogram, end: End): void => {
    const { device, engine_id, model_name, total_bytes } = end.metadata;
    const key = keyOf(end.sessionId, device);
    const pair = key === null ? null : pairs.end(key, end.timestamp);
    const bytes = amount(total_bytes);
    if (pair === null || bytes <= 0 || pair.seconds <= 0) return;
    const labels = labelsOf({ device, engine_id, model_name });
    series.observe(name, bytes / pair.seconds / NANOGIGA, labels);
  };
  return {
    MP_STORE_START: (event) => begin(stores, event),
    MP_STORE_END: (event) => finish(stores, 'l0_l1_store_throughput', event),
    MP_RETRIEVE_START: (event) => begin(loads, event),
    MP_RETRIEVE_END: (event) => finish(loads, 'l0_l1_load_throughput', event),
  };
}

function keyOf(sessionId: string, device: string | undefined): string | null {
  return sessionId === '' || device === undefined ? null : `${sessionId}\0${device}`;
}

const SAMPLE_LENGTH = 8;
const PHASES = ['kernel', 'staging'];
const DIRECTIONS = ['h2d', 'd2h'];

/** A sample of another shape, or of nothing, moves nothing. */
function addSample(series: DeriverDeps['series'], sample: PhaseSample): void {
  const [phaseIndex, direction, device, elapsedMs, nbytes] = sample.map(plainOf);
  const phase = typeof phaseIndex === 'number' ? PHASES[phaseIndex] : undefined;
  if (sample.length !== SAMPLE_LENGTH || phase === undefined) return;
  if (typeof elapsedMs !== 'number' || typeof nbytes === 'string') return;
  const bytes = Number(nbytes);
  if (!(elapsedMs > 0 && bytes > 0)) return;
  const seconds = elapsedMs / 1e3;
  const labels = {
    device_index: String(device),
    direction: directionOf(direction),
  };
  if (phase === 'staging')
    series.observe('transfer_staging_throughput', bytes / seconds / NANOGIGA, labels);
  series.add('transfer_phase_bytes', Math.trunc(bytes), { ...labels, phase });
  series.add('transfer_phase_elapsed', seconds, { ...labels, phase });
}

function directionOf(direction: unknown): string {
  return (typeof direction === 'number' && DIRECTIONS[direction]) || String(direction);
}

/** An object may refuse to become a number or a text, by an exception. */
function plainOf(value: unknown): number | bigint | string | undefined {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'string'
    ? value
    : undefined;
}
