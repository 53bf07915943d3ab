/** The captured scenarios of the real publisher, and how its counters read in ours. */
import { createHash } from 'node:crypto';
import { unpack } from 'msgpackr';
import type { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import type { PipelineConfig } from '../../src/pipeline.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import { Publisher } from '../../src/protocol/publisher.ts';
import { readJsonLines } from './vectors.ts';

export interface ScenarioSettings {
  kv_block_size: number;
  batching_timeout_ms: number | null;
  dp_rank: number;
  worker_id: string;
  image_token_id: number | null;
  video_token_id: number | null;
}

/** One rank of worker 7 with blocks of 4 tokens: what a test has that asks for nothing else. */
export const PLAIN_SETTINGS: ScenarioSettings = {
  kv_block_size: 4,
  batching_timeout_ms: 0,
  dp_rank: 0,
  worker_id: '7',
  image_token_id: null,
  video_token_id: null,
};

export interface ScenarioStep {
  delay_ms: number;
  frames?: string[];
  shutdown?: boolean;
}

export interface ScenarioOutput {
  sequence: number;
  payload?: string;
  payload_len?: number;
  payload_sha256?: string;
  at_ms?: number;
}

export interface DynamoMetrics {
  engines_dropped_events_total: number;
  zmq_events_total: Record<string, number>;
  zmq_filtered_events_total: Record<string, number>;
  zmq_conversion_issues_total: Record<string, number>;
  zmq_suspicious_events_total: Record<string, number>;
}

export interface Scenario {
  name: string;
  settings: ScenarioSettings;
  input: ScenarioStep[];
  output: ScenarioOutput[];
  metrics: DynamoMetrics;
}

export const SCENARIO_FILES = [
  'encoding',
  'batch-map',
  'medium',
  'locality',
  'ownership',
  'filter',
  'tail',
  'namespace',
  'mm',
  'eagle',
  'blocks',
  'malformed',
  'coalesce',
  'dedup',
  'sequence',
  'split',
  'timeout',
  'settings',
  'mixed',
] as const;

export function readScenarios(file: string): Scenario[] {
  return readJsonLines<Scenario>(`dynamo/${file}.jsonl`);
}

/** The server the captures were made against took messages of up to 1 MiB. */
export const CAPTURED_MAX_PAYLOAD_BYTES: number = 1 << 20;

export function pipelineConfigOf(
  settings: ScenarioSettings,
  compat: Compat = 'strict',
): PipelineConfig {
  return {
    compat,
    fullReports: false,
    maxMessageBytes: CAPTURED_MAX_PAYLOAD_BYTES,
    blockSize: settings.kv_block_size,
    batchingTimeoutMs: settings.batching_timeout_ms ?? 0,
    maxBatchBlocks: 128,
    maxTrackedBlocks: 8_000_000,
    imageTokenId: settings.image_token_id,
    videoTokenId: settings.video_token_id,
    publisher: new Publisher({ workerId: BigInt(settings.worker_id), publisherId: 1 }),
  };
}

export interface PublishedMessage {
  readonly sequence: number;
  readonly payload: Buffer;
}

export function decodeEnvelope(envelope: Uint8Array): PublishedMessage {
  const { sequence, payload } = unpack(envelope) as {
    sequence: number | bigint;
    payload: Uint8Array;
  };
  return { sequence: Number(sequence), payload: Buffer.from(payload) };
}

/** What was published, in the form that the captures have it. */
export function asCaptured(
  messages: readonly PublishedMessage[],
  expected: readonly ScenarioOutput[],
): ScenarioOutput[] {
  return messages.map(({ sequence, payload }, index) =>
    expected[index]?.payload_sha256 === undefined
      ? { sequence, payload: payload.toString('hex') }
      : {
          sequence,
          payload_len: payload.length,
          payload_sha256: createHash('sha256').update(payload).digest('hex'),
        },
  );
}

/** The captured output without the fields that are explanation. */
export function comparable(expected: readonly ScenarioOutput[]): ScenarioOutput[] {
  return expected.map(({ sequence, payload, payload_len, payload_sha256 }) =>
    payload_sha256 === undefined || payload_len === undefined
      ? { sequence, payload: payload ?? '' }
      : { sequence, payload_len, payload_sha256 },
  );
}

function moved(prefix: string, counts: Record<string, number>): [string, number][] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([label, count]) => [`${prefix}.${label}`, count]);
}

/** Our counters under the names of the real publisher's; what did not move is absent. */
export function dynamoMetricsOf(metrics: RelayMetrics): DynamoMetrics {
  return {
    engines_dropped_events_total: metrics.droppedEvents,
    zmq_events_total: Object.fromEntries([
      ...moved('accepted', metrics.accepted),
      ...moved('received', metrics.received),
    ]),
    zmq_filtered_events_total: Object.fromEntries(
      Object.entries(metrics.filtered).flatMap(([type, reasons]) => moved(type, reasons)),
    ),
    zmq_conversion_issues_total: {},
    zmq_suspicious_events_total: Object.fromEntries(
      moved('stored', { empty_store_blocks: metrics.emptyStores }),
    ),
  };
}
