/**
 * What the real publisher takes and what it refuses, asked of it payload by payload: some 1,200 small
 * variations of types, encodings, nesting and layouts.
 */
import { expect, test } from 'vitest';
import { InProcessRelay } from './support/in-process-relay.ts';
import { dynamoMetricsOf, pipelineConfigOf, type ScenarioSettings } from './support/scenarios.ts';
import { readJsonLines } from './support/vectors.ts';

interface AcceptCase {
  name: string;
  settings: ScenarioSettings;
  batches: string[];
  payloads: string[];
  /** `stage.type`, `filtered.type.reason` and `suspicious.type.reason`, as far as they moved. */
  metrics: Record<string, number>;
}

const cases = readJsonLines<AcceptCase>('dynamo/accept-set.jsonl');

test.each(cases)('$name', ({ settings, batches, payloads, metrics }) => {
  const relay = new InProcessRelay(pipelineConfigOf(settings));
  for (const [sequence, batch] of batches.entries()) {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(BigInt(sequence));
    relay.push([Buffer.alloc(0), number, Buffer.from(batch, 'hex')]);
  }
  relay.advance(20_000);
  expect(relay.published.map((message) => message.payload.toString('hex'))).toEqual(payloads);
  const counted = dynamoMetricsOf(relay.metrics);
  expect({
    ...counted.zmq_events_total,
    ...prefixed('filtered', counted.zmq_filtered_events_total),
    ...prefixed('suspicious', counted.zmq_suspicious_events_total),
  }).toEqual(metrics);
});

function prefixed(prefix: string, counts: Record<string, number>): Record<string, number> {
  const entries = Object.entries(counts);
  return Object.fromEntries(entries.map(([label, count]) => [`${prefix}.${label}`, count]));
}
