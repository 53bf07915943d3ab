/**
 * What a disturbance costs kvrelay, on the decode stream over NATS, each beside the same run without it.
 *
 *   replay      LOST batches of each EVERY do not come and have to be asked for, with the stream at full speed
 *   dump        HELD_BLOCKS more are held, and a router takes one dump after another meanwhile; beside it the same
 *               with nobody who asks
 *   NATS away   the server is killed in a paced stream, and started again after AWAY_MS
 *
 * Lost       blocks: how many fewer the subscriber has seen than in the run without, which must be none. Messages that are
 *            sent anew it sees twice, and passes over the second.
 * Behind     time from the engine's last send to the last event at the subscriber.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startBroker } from './broker.mjs';
import { measureRun, withEngine } from './end-to-end.mjs';
import { startKvrelay } from './relays.mjs';
import { median, table } from './report.mjs';
import { takeDump } from './router-query.mjs';

const EVERY = 3000;
const LOST = 300;
const HELD_BLOCKS = 1_000_000;
const QUICK_HELD_BLOCKS = 100_000;
/** What waits while the server is away has room in the relay's outbox. */
const PACED_BATCHES_A_SECOND = 3000;
const PACED_S = 4;
const AWAY_AFTER_MS = 1000;
const AWAY_MS = 1000;
const LOOK_MS = 50;
/** Of one run; a relay that has not taken its blocks by then is broken. */
const HOLD_MS = 60_000;

/** The runs of all disturbances, pair by pair; `onRun` is told of each. */
export async function measureDisturbances(bed, onRun) {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  try {
    const args = ['decode', ...(bed.isQuick ? ['--quick'] : [])];
    return await withEngine(args, async (engine, stream) => {
      const context = { ...bed, plane: 'nats', engine, stream, file: join(folder, 'left') };
      const runs = [];
      for (let pair = 0; pair < bed.pairs; pair++) {
        for (const [disturbance, measure] of Object.entries(DISTURBANCES)) {
          const run = { disturbance, ...(await measure(context)) };
          if (run.fault) throw new Error(`${disturbance}: ${run.fault}`);
          const beside = runs.findLast((other) => other.disturbance === BESIDE[disturbance]);
          run.lostBlocks = (beside ?? run).blocks - run.blocks;
          runs.push(run);
          onRun(run);
        }
      }
      return runs;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const DISTURBANCES = {
  none: (context) => measured(context, startKvrelay),
  replay: (context) => measured(context, withReplay, { command: `lossy ${EVERY} ${LOST}` }),
  'blocks held': (context) => measured(context, startKvrelay, { before: holding(context) }),
  'blocks held, dumps': (context) =>
    measured(context, startKvrelay, { before: holding(context), during: takeDumps }),
  paced: (context) => measurePaced(context, null),
  'paced, NATS away': (context) => measurePaced(context, goAway),
};

const BESIDE = {
  replay: 'none',
  'blocks held, dumps': 'blocks held',
  'paced, NATS away': 'paced',
};

function withReplay(options) {
  return startKvrelay({ ...options, relayFlags: ['--replay-endpoint', options.replayEndpoint] });
}

async function measured(context, start, options = {}) {
  const run = await measureRun(start, context, options);
  const { seconds, sendSeconds, cpuSeconds, peakMemoryBytes, messages, events, blocks } = run;
  const { dumps, dumpMs, dumpBytes, fault } = run;
  return {
    batchesPerSecond: (options.batches ?? context.stream.batches) / seconds,
    seconds,
    behindSeconds: seconds - sendSeconds,
    cpuSeconds,
    peakMemoryBytes,
    messages,
    events,
    blocks,
    fault,
    ...(dumps !== undefined && { dumps, dumpMs, dumpBytes }),
  };
}

/** Has the engine store blocks, and waits until the relay holds them and the plane has confirmed all. */
function holding({ engine, isQuick }) {
  return async (relay) => {
    engine.tell(`hold ${isQuick ? QUICK_HELD_BLOCKS : HELD_BLOCKS}`);
    const { held } = await engine.hear((message) => message.held !== undefined);
    const deadlineMs = performance.now() + HOLD_MS;
    for (;;) {
      const { ranks } = await relay.readStatus();
      if (ranks[0].blocks.device >= held && ranks[0].queues.outbox === 0) return;
      if (performance.now() > deadlineMs)
        throw new Error('kvrelay does not come to hold the blocks');
      await sleep(LOOK_MS);
    }
  };
}

/** One after another while `isRunning`. */
async function takeDumps(relay, isRunning) {
  const status = await relay.readStatus();
  const taken = [];
  while (isRunning()) taken.push(await takeDump(status));
  if (taken.length === 0) return { dumps: 0 };
  return {
    dumps: taken.length,
    dumpMs: median(taken.map(({ ms }) => ms)),
    dumpBytes: Math.max(...taken.map(({ bytes }) => bytes)),
  };
}

/** On a server of its own, since it may have to come back under the same address. */
async function measurePaced(context, disturb) {
  const { serverPath, stream, file } = context;
  const broker = { running: await startBroker(serverPath) };
  const natsUrl = broker.running.url;
  const most = Math.min(stream.batches - 1, PACED_BATCHES_A_SECOND * PACED_S);
  try {
    return await measured({ ...context, natsUrl }, startKvrelay, {
      batches: most,
      command: `pace ${PACED_BATCHES_A_SECOND} ${most} ${file}`,
      subscriberFlags: ['--reconnect'],
      ...(disturb !== null && { during: () => disturb(broker, context) }),
    });
  } finally {
    await broker.running.stop();
  }
}

async function goAway(broker, { serverPath }) {
  const { port } = new URL(broker.running.url);
  await sleep(AWAY_AFTER_MS);
  await broker.running.stop('SIGKILL');
  await sleep(AWAY_MS);
  broker.running = await startBroker(serverPath, Number(port));
}

/** Medians of the runs. */
export function disturbanceTable(runs) {
  const names = [...new Set(runs.map(({ disturbance }) => disturbance))];
  const rows = names.map((name) => {
    const own = runs.filter(({ disturbance }) => disturbance === name);
    const of = (figure) => median(own.map((run) => run[figure]));
    const dumps =
      own[0].dumps === undefined ? '' : `${of('dumps')} in ${Math.round(of('dumpMs'))} ms each`;
    return [
      name,
      Math.round(of('batchesPerSecond')),
      Number(of('seconds').toFixed(2)),
      Number(of('behindSeconds').toFixed(2)),
      Number(of('cpuSeconds').toFixed(2)),
      Math.round(of('peakMemoryBytes') / 2 ** 20),
      own.reduce((sum, { lostBlocks }) => sum + lostBlocks, 0),
      dumps,
    ];
  });
  const figures = ['batches/s', 'seconds', 'behind, s', 'CPU s', 'peak MiB', 'blocks lost'];
  return table(['disturbance', ...figures, 'dumps'], rows);
}
