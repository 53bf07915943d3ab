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
  const { isQuick, pairs } = bed;
  const engine = new Program(process.execPath, [
    scriptPath('engine.mjs'),
    name,
    ...(isQuick ? ['--quick'] : []),
  ]);
  try {
    const stream = await engine.hear(({ batches }) => batches !== undefined);
    const context = { ...bed, engine, stream };
    const runs = [];
    const measured = async (relay, start, isFloor) => {
      const run = { relay, ...(await measureRun(start, context, isFloor)) };
      runs.push(run);
      onRun(stream, run);
      return run;
    };
    for (let pair = 0; pair < pairs; pair++) {
      const ours = await measured('kvrelay', startKvrelay, false);
      if (bed.python !== null) await measured('dynamo', startDynamo, false);
      context.messageBytes = Math.round(ours.bytes / stream.batches);
      await measured('floor', startFloor, true);
    }
    checkSameEvents(name, runs);
    return { stream, plane: bed.plane, runs };
  } finally {
    await engine.stop();
  }
}

async function measureRun(start, context, isFloor) {
  const { engine, stream, plane, natsUrl } = context;
  engine.tell('open');
  const { endpoint } = await engine.hear((message) => message.endpoint !== undefined);
  const options = { ...context, engineEndpoint: endpoint };
  // A NATS subscriber has to be there first; one of the ZMQ plane needs an address to connect to.
  const early = plane === 'nats' ? await subscribe(plane, new URL(natsUrl).host, isFloor) : null;
  const relay = await start({ ...options, blockSize: stream.blockSize, batches: stream.batches });
  const subscriber = early ?? (await subscribe(plane, relay.planeEndpoint, isFloor));
  try {
    await engine.hear(({ subscribed }) => subscribed);
    await sleep(SETTLE_MS);
    const { pid } = relay.program;
    const cpuBefore = cpuSeconds(pid);
    engine.tell('go');
    const { startNs, sentNs } = await engine.hear((message) => message.startNs !== undefined);
    const { endNs, ...received } = await subscriber.hear((message) => message.endNs !== undefined);
    const cpu = cpuSeconds(pid) - cpuBefore;
    if (received.fault) throw new Error(`${stream.name}: ${received.fault}`);
    const seconds = Number(BigInt(endNs) - BigInt(startNs)) / 1e9;
    return {
      seconds,
      sendSeconds: Number(BigInt(sentNs) - BigInt(startNs)) / 1e9,
      eventsPerSecond: stream.events / seconds,
      blocksPerSecond: stream.blocks / seconds,
      cpuSeconds: cpu,
      cpuNsPerEvent: (cpu * 1e9) / stream.events,
      peakMemoryBytes: peakMemoryBytes(pid),
      ...received,
    };
  } finally {
    await relay.stop();
    await subscriber.stop();
    engine.tell('close');
  }
}

async function subscribe(plane, address, isFloor) {
  const args = [plane, address, ...(isFloor ? ['--bytes'] : [])];
  const subscriber = new Program(process.execPath, [scriptPath('subscriber.mjs'), ...args]);
  await subscriber.hear(({ subscribed }) => subscribed);
  return subscriber;
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
