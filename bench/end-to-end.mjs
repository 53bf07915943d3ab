/**
 * End to end: an engine process, a relay process, the plane, a subscriber process.
 *
 * Time     from the engine's first send to the last event at the subscriber.
 * Relays   kvrelay and Dynamo in turn, then the floor, `pairs` times over; ratios are of one pair, whose
 *          runs are next to each other, as a busy machine changes from minute to minute.
 * Checked  that event ids and message numbers have no holes and that all relays made the same events.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, Program, peakMemoryBytes } from './processes.mjs';
import { scriptPath, startDynamo, startFloor, startKvrelay } from './relays.mjs';

/** Lets start-up work of the relays end before it would be counted. */
const SETTLE_MS = 300;

/** `{stream, plane, runs}` of one stream; `onRun` is told of each run. */
export async function measureStream(name, bed, onRun) {
  return await withEngine([name, ...(bed.isQuick ? ['--quick'] : [])], async (engine, stream) => {
    const context = { ...bed, engine, stream };
    const runs = [];
    const measured = async (relay, start, options) => {
      const run = { relay, ...(await measureRun(start, context, options)) };
      runs.push(run);
      onRun(stream, run);
      return run;
    };
    for (let pair = 0; pair < bed.pairs; pair++) {
      const dynamo = () => bed.python !== null && measured('dynamo', startDynamo);
      // Each is first as often as the other.
      if (pair % 2 === 1) await dynamo();
      const ours = await measured('kvrelay', startKvrelay);
      if (pair % 2 === 0) await dynamo();
      context.messageBytes = Math.round(ours.bytes / stream.batches);
      await measured('floor', startFloor, { subscriberFlags: ['--bytes'] });
    }
    checkSameEvents(name, runs);
    return { stream, plane: bed.plane, runs };
  });
}

/** Runs `use` with an engine of these arguments, and with what it says of its stream. */
export async function withEngine(args, use) {
  const engine = new Program(process.execPath, [scriptPath('engine.mjs'), ...args]);
  try {
    return await use(engine, await engine.hear(({ batches }) => batches !== undefined));
  } finally {
    await engine.stop();
  }
}

/**
 * One run of one relay. `command` is what the engine is told. `before` is given the relay before the clock runs; `during`
 * while it does, and whether it still does; both may resolve with more figures. Without `mayLose`, a hole in the numbers is
 * an error.
 */
export async function measureRun(start, context, options = {}) {
  const { command = 'go', subscriberFlags = [], before, during, mayLose = false } = options;
  const { engine, stream, plane, natsUrl, routers = 0 } = context;
  engine.tell('open');
  const opened = await engine.hear(({ endpoint }) => endpoint !== undefined);
  const subscribed = (address) => subscribe(plane, address, subscriberFlags);
  // A NATS subscriber has to be there first; one of the ZMQ plane needs an address to connect to.
  const early = plane === 'nats' ? await subscribed(new URL(natsUrl).host) : null;
  const { blockSize, batches } = stream;
  const engineEndpoint = opened.endpoint;
  const { replayEndpoint } = opened;
  const relay = await start({ ...context, engineEndpoint, replayEndpoint, blockSize, batches });
  const subscriber = early ?? (await subscribed(relay.planeEndpoint));
  const others = routers > 0 ? await startRouters(relay.planeEndpoint, routers) : null;
  try {
    await engine.hear((message) => message.subscribed);
    const found = await before?.(relay);
    await sleep(SETTLE_MS);
    const { pid } = relay.program;
    const cpuBefore = cpuSeconds(pid);
    engine.tell(command);
    let isRunning = true;
    const noting = during?.(relay, () => isRunning);
    const { startNs, sentNs, lateMs } = await engine.hear(({ sentNs }) => sentNs !== undefined);
    const { endNs } = await subscriber.hear((message) => message.endNs !== undefined);
    const cpu = cpuSeconds(pid) - cpuBefore;
    isRunning = false;
    const noted = await noting;
    const heard = await subscriber.hear(({ messages }) => messages !== undefined);
    const { silences, ...received } = heard;
    const since = silences.filter(({ fromNs }) => BigInt(fromNs) >= BigInt(startNs));
    if (received.fault && !mayLose) throw new Error(`${stream.name}: ${received.fault}`);
    const seconds = Number(BigInt(endNs) - BigInt(startNs)) / 1e9;
    return {
      seconds,
      sendSeconds: Number(BigInt(sentNs) - BigInt(startNs)) / 1e9,
      eventsPerSecond: stream.events / seconds,
      blocksPerSecond: stream.blocks / seconds,
      cpuSeconds: cpu,
      cpuNsPerEvent: (cpu * 1e9) / stream.events,
      peakMemoryBytes: peakMemoryBytes(pid),
      ...(lateMs !== undefined && { lateMs }),
      longestSilenceMs: Math.max(0, ...since.map(({ ms }) => ms)),
      ...found,
      ...noted,
      ...received,
    };
  } finally {
    await relay.stop();
    await others?.stop();
    await subscriber.stop();
    engine.tell('close');
  }
}

export async function subscribe(plane, address, flags = []) {
  const args = [scriptPath('subscriber.mjs'), plane, address, ...flags];
  const subscriber = new Program(process.execPath, args);
  await subscriber.hear(({ subscribed }) => subscribed);
  return subscriber;
}

/** Beside the subscriber, on the ZMQ plane. */
async function startRouters(endpoint, count) {
  const routers = new Program(process.execPath, [
    scriptPath('more-routers.mjs'),
    endpoint,
    `${count}`,
  ]);
  await routers.hear(({ subscribed }) => subscribed);
  return routers;
}

/** A relay that lost or merged differently would not be comparable. */
function checkSameEvents(name, runs) {
  const contents = runs
    .filter(({ relay }) => relay !== 'floor')
    .map(
      ({ lastEventId, events, blocks }) =>
        `${events} events, ${blocks} blocks, last ${lastEventId}`,
    );
  if (new Set(contents).size > 1) {
    throw new Error(
      `${name}: the relays made different events: ${[...new Set(contents)].join('; ')}`,
    );
  }
}
