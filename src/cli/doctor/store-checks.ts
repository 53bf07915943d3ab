/** Stores beside the engine: is there somebody at their addresses, and what do they say of themselves. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { formatHttpAddress } from '../../config/addresses.ts';
import { HttpGetError, httpGet } from '../../connections/http-get.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { MasterError } from '../../stores/mooncake/master.ts';
import { MasterClient } from '../../stores/mooncake/master-client.ts';
import { type Check, type CheckName, fail, ok, skipped, warn } from './check.ts';
import { orEnd, type ProbeContext } from './context.ts';
import { messageOfReach, reach } from './reach.ts';

const ANSWER_MS = 3000;
const MAX_ANSWER_BYTES = 65_536;

export async function storeChecks(context: ProbeContext): Promise<Check[]> {
  const { config } = context;
  const mooncake =
    'Start the master with --kv_events_bind_endpoint, and name that in --mooncake-endpoint';
  const stream = "Start LMCache's MP server, and name its request port in --lmcache-stream";
  const bridge = 'Start LMCache with the bridge, and name its endpoint in --lmcache-bridge';
  return Promise.all([
    socketCheck('mooncake_store', config.mooncakeEndpoint, mooncake, context),
    masterCheck(context),
    socketCheck('lmcache_stream', config.lmcacheStream, stream, context),
    socketCheck('lmcache_bridge', config.lmcacheBridge, bridge, context),
    coordinatorCheck(context),
    forwardCheck(context),
  ]);
}

/** Names of the sources of a relay that runs, by check. */
const SOURCES: Readonly<Partial<Record<CheckName, string>>> = {
  mooncake_store: 'mooncake',
  lmcache_stream: 'lmcache_stream',
  lmcache_bridge: 'lmcache',
  lmcache_endpoint: 'lmcache_coordinator',
};

async function socketCheck(
  name: CheckName,
  endpoint: string | null,
  remedy: string,
  context: ProbeContext,
): Promise<Check> {
  if (endpoint === null) return skipped(name, 'none is given');
  const found = await reach(endpoint, context.ended);
  if (found.kind !== 'zmq') return fail(name, `${endpoint}: ${messageOfReach(found)}`, remedy);
  return withSilence(name, `a ZMQ socket listens at ${endpoint}`, remedy, context);
}

/** What the relay that runs has heard from there, where one does. */
function withSilence(
  name: CheckName,
  text: string,
  remedy: string,
  { relay }: ProbeContext,
): Check {
  const source = relay?.sources?.find((one) => one.source === SOURCES[name]);
  if (source === undefined) return ok(name, text);
  const ageMs = source.last_message_age_ms ?? null;
  if (ageMs !== null) {
    return ok(name, `${text}; the relay heard of it ${(ageMs / 1000).toFixed(0)} s ago`);
  }
  return warn(name, `${text}, but the relay that runs has heard nothing yet`, remedy);
}

async function masterCheck({ config, ended }: ProbeContext): Promise<Check> {
  const name = 'mooncake_master';
  const { mooncakeMaster } = config;
  if (mooncakeMaster === null) return skipped(name, 'none is given: a loss gives up all');
  const client = new MasterClient(mooncakeMaster);
  try {
    const status = await orEnd(client.status(), ended);
    if (status === null) throw new MasterError('timeout', 'no answer in time');
    const { enabled, publishedBatches, droppedEvents } = status;
    if (!enabled) {
      const text = `${mooncakeMaster} answers, and publishes no KV events`;
      return fail(name, text, 'Start the master with --enable_kv_events=true');
    }
    const text = `${mooncakeMaster} answers; messages published so far: ${publishedBatches}`;
    if (droppedEvents === 0) return ok(name, text);
    const remedy = 'Raise --kv_events_queue_capacity of the master';
    return warn(name, `${text}, events dropped: ${droppedEvents}`, remedy);
  } catch (error) {
    if (!(error instanceof MasterError)) throw error;
    const remedy = error.remedy ?? 'Give the address of its admin port in --mooncake-master';
    return fail(name, `${mooncakeMaster}: ${error.message}`, remedy);
  } finally {
    client.stop();
  }
}

/** Its address is free, or the relay that runs has it. */
async function coordinatorCheck(context: ProbeContext): Promise<Check> {
  const name = 'lmcache_endpoint';
  const { lmcacheCoordinatorListen: listen } = context.config;
  if (listen === null) return skipped(name, 'none is given');
  const shown = formatHttpAddress(listen);
  const post = `Start LMCache's servers with --coordinator-url http://${shown} and --coordinator-event-reporting`;
  const isOurs = context.relay?.sources?.some(({ source }) => source === SOURCES[name]) ?? false;
  if (isOurs) return withSilence(name, `the relay that runs listens at ${shown}`, post, context);
  const server = createServer();
  try {
    server.listen({ host: listen.host, port: listen.port });
    await once(server, 'listening');
    return ok(name, `${shown} can be bound`);
  } catch (error) {
    const problem = errorCode(error) === 'EADDRINUSE' ? 'another service has it' : messageOf(error);
    const remedy =
      'Give another address with --lmcache-coordinator-listen; a real coordinator there goes elsewhere, and ' +
      'its address into --lmcache-coordinator-forward';
    return fail(name, `${shown} cannot be bound: ${problem}`, remedy);
  } finally {
    server.close();
  }
}

async function forwardCheck({ config, ended }: ProbeContext): Promise<Check> {
  const name = 'lmcache_forward';
  const { lmcacheCoordinatorForward: url } = config;
  if (url === null) return skipped(name, 'no coordinator stands behind');
  const options = { timeoutMs: ANSWER_MS, maxBytes: MAX_ANSWER_BYTES, stop: ended, agent: null };
  const remedy = 'Start lmcache coordinator, and name its address in --lmcache-coordinator-forward';
  try {
    const answer = (await httpGet(`${url}/healthz`, options)).toString('utf8');
    if (/"healthy"/.test(answer)) return ok(name, `a coordinator answers at ${url}`);
    return fail(name, `what answers at ${url} is no coordinator of LMCache`, remedy);
  } catch (error) {
    if (!(error instanceof HttpGetError)) throw error;
    return fail(name, `${url}: ${error.message}`, remedy);
  }
}
