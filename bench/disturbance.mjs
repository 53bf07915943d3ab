/**
 * What a disturbance costs kvrelay, on the decode stream over NATS, each beside the same stream without it. At full speed:
 *
 *   a replay         LOST batches of each EVERY do not come and have to be asked for
 *   held, a dump     HELD_BLOCKS more are held, and a router takes a dump when the stream begins; beside `held`
 *
 * and paced:
 *
 *   held, dumps      the same with one dump after another
 *   held, pages      the same with one reading of /metrics, /api/status and /api/dump after another
 *   NATS away        the server is killed, and started again after AWAY_MS
 *
 * Silence    the longest time in which nothing came at the subscriber; shorter ones than 5 ms count as none.
 * Lost       blocks: how many fewer the subscriber has seen than without, which has to be none but for a dump at full speed:
 *            there, what waits for the router may outgrow the outbox, and a router asks for what is missing.
 *            Messages that are sent anew it sees twice, and passes over the second.
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
          const beside = runs.findLast((other) => other.disturbance === BESIDE[disturbance]) ?? run;
          run.lostBlocks = beside.blocks - beside.held + run.held - run.blocks;
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
  'a replay': (context) => measured(context, withReplay, { command: `lossy ${EVERY} ${LOST}` }),
  held: (context) => measured(context, startKvrelay, { before: holding(context) }),
  'held, a dump': (context) => {
    const options = { before: holding(context), during: dumping(() => false), mayLose: true };
    return measured(context, startKvrelay, options);
  },
  paced: (context) => measurePaced(context),
  'paced, held, dumps': (context) => {
    const during = (_, relay, isRunning) => dumping(isRunning)(relay);
    return measurePaced(context, { before: holding(context), during });
  },
  'paced, held, pages': (context) => {
    const during = (_, relay, isRunning) => reading(relay, isRunning);
    return measurePaced(context, { before: holding(context), during });
  },
  'paced, NATS away': (context) => {
    return measurePaced(context, { during: (broker) => goAway(broker, context) });
  },
};

const BESIDE = {
  'a replay': 'none',
  'held, a dump': 'held',
  'paced, held, dumps': 'paced',
  'paced, held, pages': 'paced',
  'paced, NATS away': 'paced',
};

function withReplay(options) {
  return startKvrelay({ ...options, relayFlags: ['--replay-endpoint', options.replayEndpoint] });
}

async function measured(context, start, options = {}) {
  const run = await measureRun(start, context, options);
  const { seconds, sendSeconds, cpuSeconds, peakMemoryBytes, messages, events, blocks } = run;
  const { held = 0, longestSilenceMs, dumps, dumpMs, dumpBytes, fault } = run;
  return {
    batchesPerSecond: (options.batches ?? context.stream.batches) / seconds,
    seconds,
    behindSeconds: seconds - sendSeconds,
    longestSilenceMs,
    cpuSeconds,
    peakMemoryBytes,
    messages,
    events,
    blocks,
    held,
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
      if (ranks[0].blocks.device >= held && ranks[0].queues.outbox === 0) return { held };
      if (performance.now() > deadlineMs)
        throw new Error('kvrelay does not come to hold the blocks');
      await sleep(LOOK_MS);
    }
  };
}

/** Takes one dump, and others after it while `isMore`. */
function dumping(isMore) {
  return async (relay) => {
    const status = await relay.readStatus();
    const taken = [];
    do taken.push(await takeDump(status));
    while (isMore());
    return {
      dumps: taken.length,
      dumpMs: median(taken.map(({ ms }) => ms)),
      dumpBytes: Math.max(...taken.map(({ bytes }) => bytes)),
    };
  };
}

async function reading({ http }, isRunning) {
  while (isRunning()) {
    for (const path of ['metrics', 'api/status', 'api/dump']) {
      const response = await fetch(new URL(path, http));
      if (!response.ok) throw new Error(`${path} answers ${response.status}`);
      await response.arrayBuffer();
    }
  }
}

/** On a server of its own, since it may have to come back under the same address. */
async function measurePaced(context, { before, during } = {}) {
  const { serverPath, stream, file } = context;
  const broker = { running: await startBroker(serverPath) };
  const natsUrl = broker.running.url;
  const most = Math.min(stream.batches - 1, PACED_BATCHES_A_SECOND * PACED_S);
  try {
    return await measured({ ...context, natsUrl }, startKvrelay, {
      batches: most,
      command: `pace ${PACED_BATCHES_A_SECOND} ${most} ${file}`,
      subscriberFlags: ['--reconnect'],
      before,
      ...(during && { during: (relay, isRunning) => during(broker, relay, isRunning) }),
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
      own[0].dumps === undefined ? 'none' : `${of('dumps')} in ${Math.round(of('dumpMs'))} ms each`;
    return [
      name,
      Math.round(of('batchesPerSecond')),
      Number(of('seconds').toFixed(2)),
      Number(of('behindSeconds').toFixed(2)),
      Math.round(of('longestSilenceMs')),
      Number(of('cpuSeconds').toFixed(2)),
      Math.round(of('peakMemoryBytes') / 2 ** 20),
      own.reduce((sum, { lostBlocks }) => sum + lostBlocks, 0),
      dumps,
    ];
  });
  const figures = [
    'batches/s',
    'seconds',
    'behind, s',
    'silence, ms',
    'CPU s',
    'peak MiB',
    'blocks lost',
  ];
  return table(['disturbance', ...figures, 'dumps'], rows);
}
