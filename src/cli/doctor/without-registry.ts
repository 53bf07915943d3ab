/** What there is to say without a registry: the worker id, and other sources as far as NATS shows them. */
import { endpointSubject } from '../../protocol/discovery-keys.ts';
import { KV_EVENTS_TOPIC } from '../../protocol/envelope.ts';
import type { Line } from '../inspect-line.ts';
import { envelopeLines } from '../inspect-plane.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { orEnd, type ProbeContext, pause } from './context.ts';
import { connectOnce } from './nats-checks.ts';
import { routerCheck } from './router-check.ts';

const NO_REGISTRY = 'there is no discovery';
/** How long other publishers on NATS are listened for. */
const WATCH_MS = 2000;

export async function checksWithoutRegistry(context: ProbeContext): Promise<Check[]> {
  return [
    skipped('discovery_backend', `${NO_REGISTRY}: routers have to be told everything`),
    skipped('discovery_records', NO_REGISTRY),
    workerCheck(context),
    skipped('worker_card', NO_REGISTRY),
    await sourceCheck(context),
    routerCheck(null, context),
  ];
}

function workerCheck({ config, isWorkerIdGiven }: ProbeContext): Check {
  const name = 'worker';
  if (isWorkerIdGiven)
    return ok(name, `worker ${config.workerId} is configured; nothing can confirm it`);
  const text = 'the worker id is a random one at each start: routers know no such worker';
  return warn(name, text, 'Give --worker-id the id that routers know, or --discovery');
}

async function sourceCheck(context: ProbeContext): Promise<Check> {
  const name = 'ambiguous_source';
  const { config, isWorkerIdGiven } = context;
  if (config.eventPlane !== 'nats') return skipped(name, `${NO_REGISTRY} to look in`);
  if (!isWorkerIdGiven) return skipped(name, 'without a worker id every source is another worker');
  const other = await watch(context).catch(() => undefined);
  if (other === undefined) return skipped(name, 'there is no connection to the server');
  if (other === null) return ok(name, 'nobody else was heard publishing for this worker');
  const text = `somebody else publishes for worker ${config.workerId}, rank ${String(other.rank)} on NATS`;
  const remedy =
    'Stop it: start the worker without its own event publisher (bridges/dynamo), or the other relay';
  return fail(name, text, remedy);
}

/** The first event that another publisher sends for one of our ranks; null where there is none in time. */
async function watch(context: ProbeContext): Promise<Line | null> {
  const { config, ended, relay } = context;
  const own = new Set(relay?.ranks.map(({ publisher_id }) => publisher_id) ?? []);
  const isOther = ({ worker, rank, publisher }: Line): boolean =>
    worker === String(config.workerId) &&
    typeof rank === 'number' &&
    rank >= config.dpRank &&
    rank < config.dpRank + config.dpSize &&
    !own.has(String(publisher));
  const connecting = connectOnce(context);
  const client = await orEnd(connecting, ended);
  if (client === null) throw new Error('no answer in time');
  try {
    let found: Line | null = null;
    const heard = new Promise<void>((resolve) => {
      client.subscribe(endpointSubject(config, KV_EVENTS_TOPIC), {
        callback: (error, { data }) => {
          if (error !== null || found !== null) return;
          found = envelopeLines(data, {}).find(isOther) ?? null;
          if (found !== null) resolve();
        },
      });
    });
    await Promise.race([heard, pause(WATCH_MS, ended)]);
    return found;
  } finally {
    await client.close();
  }
}
