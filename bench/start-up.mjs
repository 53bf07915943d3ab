/**
 * A relay's start beside an engine that is already sending, over NATS: from the start of the process until it says that it is
 * ready, and until the first event has arrived at the router's side.
 *
 * Ready    kvrelay: its status is no longer `starting`, asked every 20 ms; Dynamo: its publisher has been made.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { subscribe, withEngine } from './end-to-end.mjs';
import { cpuSeconds } from './processes.mjs';
import { startDynamo, startKvrelay } from './relays.mjs';
import { median, table } from './report.mjs';

const BATCHES_A_SECOND = 500;
/** More than any start takes. */
const BATCHES = 10_000;

/** `{relay, readyMs, firstEventMs, cpuSeconds}` of each start; `onRun` is told of each. */
export async function measureStarts(bed, onRun) {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  const context = { ...bed, plane: 'nats', file: join(folder, 'left') };
  const runs = [];
  const measured = async (relay, start) => {
    const run = { relay, ...(await measureStart(start, context)) };
    runs.push(run);
    onRun(run);
  };
  try {
    for (let pair = 0; pair < bed.pairs; pair++) {
      await measured('kvrelay', startKvrelay);
      if (bed.python !== null) await measured('dynamo', startDynamo);
    }
    return runs;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function measureStart(start, context) {
  const { plane, natsUrl, file } = context;
  return withEngine(['decode', '--batches', String(BATCHES)], async (engine, stream) => {
    const subscriber = await subscribe(plane, new URL(natsUrl).host);
    engine.tell('open');
    const { endpoint } = await engine.hear((message) => message.endpoint !== undefined);
    engine.tell(`pace ${BATCHES_A_SECOND} ${BATCHES} ${file}`);
    const startNs = process.hrtime.bigint();
    const { blockSize } = stream;
    const relay = await start({ ...context, engineEndpoint: endpoint, blockSize });
    const readyNs = process.hrtime.bigint();
    try {
      const { firstNs } = await subscriber.hear((message) => message.firstNs !== undefined);
      return {
        readyMs: Number(readyNs - startNs) / 1e6,
        firstEventMs: Number(BigInt(firstNs) - startNs) / 1e6,
        cpuSeconds: cpuSeconds(relay.program.pid),
      };
    } finally {
      await relay.stop();
      await subscriber.stop();
    }
  });
}

/** Medians of the starts. */
export function startsTable(runs) {
  const rows = [...new Set(runs.map(({ relay }) => relay))].map((relay) => {
    const own = runs.filter((run) => run.relay === relay);
    const of = (figure) => median(own.map((run) => run[figure]));
    const ms = [of('readyMs'), of('firstEventMs')].map(Math.round);
    return [relay, ...ms, Number(of('cpuSeconds').toFixed(2))];
  });
  return table(['relay', 'ready, ms', 'first event, ms', 'CPU s so far'], rows);
}
