/**
 * What a stock KvRouter holds after streams of router events, beside what the local index holds and what
 * its model says: the captured streams again, and random ones.
 */
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BlockIndex } from '../../src/indexer/block-index.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { applyTo, dumpOf, rowsOf } from '../support/held-blocks.ts';
import { type NatsServerProcess, startNatsServer } from '../support/nats-server.ts';
import { fixedSeed } from '../support/properties.ts';
import { RouterIndexModel } from '../support/router-index-model.ts';
import {
  modelEvent,
  type RouterStream,
  randomStream,
  seededRandom,
  sortedRows,
  wireEvent,
} from '../support/router-streams.ts';
import { readJsonLines } from '../support/vectors.ts';

const DYNAMO_PYTHON = process.env.KVRELAY_INTEROP_DYNAMO ?? '';
const ORACLE = new URL('../peers/dynamo_router_oracle.py', import.meta.url).pathname;
/** Ranks of one router; each has a source of its own. */
const STREAMS_AT_ONCE = 200;

let server: NatsServerProcess;

beforeAll(async () => {
  if (DYNAMO_PYTHON !== '') server = await startNatsServer();
});

afterAll(async () => {
  await server?.stop();
});

/** The streams with what a stock router holds after each. */
function askRouter(streams: readonly RouterStream[]): Promise<RouterStream[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(DYNAMO_PYTHON, [ORACLE, '--nats-url', server.url], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    }
    child.once('error', reject);
    child.once('close', (status) => {
      const lines = output.stdout.split('\n').filter((line) => line.startsWith('{'));
      if (lines.length === streams.length) {
        resolve(lines.map((line) => JSON.parse(line) as RouterStream));
      } else reject(new Error(`the router ended with ${status}: ${output.stderr.slice(-2000)}`));
    });
    for (const { name, events } of streams) {
      child.stdin.write(`${JSON.stringify({ name, events })}\n`);
    }
    child.stdin.end();
  });
}

interface Held {
  readonly name: string;
  readonly rows: readonly string[];
}

/** What index and model hold; null where the router's answer is not determined. */
function heldHere({ name, events }: RouterStream): { index: Held; model: Held } | null {
  const index = new BlockIndex(1e6, new RelayMetrics());
  const model = new RouterIndexModel();
  for (const event of events) {
    applyTo(index, modelEvent(event));
    model.apply(modelEvent(event));
  }
  const rows = sortedRows(rowsOf(dumpOf(index)));
  index.free();
  if (model.isAmbiguous) return null;
  return { index: { name, rows }, model: { name, rows: sortedRows(model.rows()) } };
}

async function expectSameAsRouter(streams: readonly RouterStream[]): Promise<number> {
  const answers = await askRouter(streams);
  let blocks = 0;
  for (const [at, stream] of streams.entries()) {
    const here = heldHere(stream);
    if (here === null) continue;
    const router = { name: stream.name, rows: sortedRows(answers[at]?.blocks ?? []) };
    expect(here.model).toEqual(router);
    expect(here.index).toEqual(router);
    blocks += router.rows.length;
  }
  return blocks;
}

describe.skipIf(DYNAMO_PYTHON === '')(
  'a stock router, the index and its model hold the same',
  () => {
    test('after the captured streams, as they were captured', async () => {
      const captured = readJsonLines<RouterStream>('dynamo/router-index.jsonl');
      expect(await expectSameAsRouter(captured)).toBeGreaterThan(100);
      const answers = await askRouter(captured);
      for (const [at, { name, blocks = [] }] of captured.entries()) {
        const now = { name, rows: sortedRows(answers[at]?.blocks ?? []) };
        expect(now).toEqual({ name, rows: sortedRows(blocks) });
      }
    });

    test.each([
      [0, 40],
      [0, 300],
      [0.05, 100],
      [0.5, 40],
    ])(
      'after random streams, %d of the hashes wild, up to %d events',
      async (wildness, maxEvents) => {
        const random = seededRandom(fixedSeed.seed + maxEvents);
        const streams = Array.from({ length: STREAMS_AT_ONCE }, (_, at): RouterStream => {
          const events = randomStream(random, { maxEvents, wildness }).map(wireEvent);
          return { name: `stream ${at}`, events };
        });
        expect(await expectSameAsRouter(streams)).toBeGreaterThan(STREAMS_AT_ONCE);
      },
    );
  },
);
