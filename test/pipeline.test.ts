import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { unpack } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { STORAGE_TIERS } from '../src/protocol/storage-tier.ts';
import { batch, batchFrames, removeEvent } from './support/batches.ts';
import { dumpOf, rowsOf } from './support/held-blocks.ts';
import { framesOf, InProcessRelay } from './support/in-process-relay.ts';
import { eventsOf, heldAsSet, modelEventOf } from './support/published-events.ts';
import { RouterIndexModel } from './support/router-index-model.ts';
import { sortedRows } from './support/router-streams.ts';
import {
  asCaptured,
  CAPTURED_MAX_PAYLOAD_BYTES,
  comparable,
  dynamoMetricsOf,
  PLAIN_SETTINGS,
  pipelineConfigOf,
  readScenarios,
  SCENARIO_FILES,
  type Scenario,
} from './support/scenarios.ts';
import { readTrace, traceRecords } from './support/traces.ts';

function play(scenario: Scenario): InProcessRelay {
  const relay = new InProcessRelay(pipelineConfigOf(scenario.settings), CAPTURED_MAX_PAYLOAD_BYTES);
  for (const step of scenario.input) {
    relay.advance(step.delay_ms);
    if (step.frames !== undefined) relay.push(framesOf(step.frames));
    if (step.shutdown === true) relay.stop();
  }
  // The captures end when the publisher has been quiet for longer than any timeout.
  relay.advance(20_000);
  return relay;
}

describe.each(SCENARIO_FILES)('the pipeline publishes what the real publisher does: %s', (file) => {
  test.each(readScenarios(file))('$name', (scenario) => {
    const relay = play(scenario);
    expect(asCaptured(relay.published, scenario.output)).toEqual(comparable(scenario.output));
    expect(dynamoMetricsOf(relay.metrics)).toEqual(scenario.metrics);
  });
});

test.each(['trace-16', 'trace-512'])('%s: a long stream, byte for byte', (name) => {
  const trace = readTrace(name);
  const bytes = gunzipSync(trace.bytes);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(trace.sha256);
  const relay = new InProcessRelay(pipelineConfigOf(trace.settings), CAPTURED_MAX_PAYLOAD_BYTES);
  for (const frames of traceRecords(bytes)) relay.push(frames);
  relay.stop();

  const { published, indexer } = relay;
  const payloads = createHash('sha256');
  for (const { payload } of published) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(payload.length);
    payloads.update(length).update(payload);
  }
  const lastPayload = unpack(published.at(-1)?.payload ?? Buffer.of(0x90)) as {
    event: { event_id: number };
  }[];
  expect(published).toHaveLength(trace.expected.messages);
  expect(String(lastPayload.at(-1)?.event.event_id)).toBe(trace.expected.last_event_id);
  expect(payloads.digest('hex')).toBe(trace.expected.payloads_sha256);
  expect(dynamoMetricsOf(relay.metrics)).toEqual(trace.metrics);

  const events = published.flatMap(({ payload }) => eventsOf(payload));
  const held = heldAsSet(events);
  const live = indexer.blocks.dpRanks.flatMap((dpRank) =>
    STORAGE_TIERS.map((tier) => {
      const hashes = [...(held.get(`${dpRank}/${tier}`) ?? [])].sort((a, b) => (a < b ? -1 : 1));
      const digest = createHash('sha256').update(hashes.map((hash) => `${hash}\n`).join(''));
      return {
        dp_rank: dpRank,
        storage_tier: tier,
        count: hashes.length,
        sha256: digest.digest('hex'),
      };
    }).filter(({ count }) => count > 0),
  );
  expect(live).toEqual(trace.expected.live);

  const dump = dumpOf(indexer.blocks);
  for (const dpRank of indexer.blocks.dpRanks) {
    const model = new RouterIndexModel();
    for (const event of events) if (event.rank === dpRank) model.apply(modelEventOf(event));
    expect(sortedRows(rowsOf(dump, dpRank))).toEqual(sortedRows(model.rows()));
  }
});

test('removes that come next to each other count one by one, those that are filtered as well', () => {
  const relay = new InProcessRelay(pipelineConfigOf(PLAIN_SETTINGS));
  const hashes = Array.from({ length: 6 }, (_, at) => 2n ** 63n + BigInt(at));
  const filtered = hashes.slice(0, 4).map((hash) => removeEvent([hash], { medium: 'TAPE' }));
  const removes = hashes.map((hash) => removeEvent([hash]));
  relay.push(batchFrames(batch([...filtered, ...removes])));
  const { metrics, published } = relay;
  expect(metrics.received.removed).toBe(10);
  expect(metrics.accepted.removed).toBe(6);
  expect(metrics.filtered.removed.unknown_medium).toBe(4);
  expect(metrics.coalescedEvents).toBe(5);
  expect(metrics.droppedEvents).toBe(0);
  expect(metrics.publishedBlocks.removed).toBe(6);
  expect(published).toHaveLength(1);
});
