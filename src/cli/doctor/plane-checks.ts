/** The event plane of `kvrelay doctor`: can it be opened here, and do routers reach it. */
import { existsSync, lstatSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { loadEndpoint, parseZmqAddress, rankEndpoint } from '../../config/addresses.ts';
import { advertisedEndpoint, isLoopbackEndpoint } from '../../connections/advertised-endpoint.ts';
import { listen } from '../../connections/zmtp/listen.ts';
import { numericEndpoint } from '../../connections/zmtp/net-address.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import type { ProbeContext } from './context.ts';
import { natsChecks } from './nats-checks.ts';
import { messageOfReach, reach } from './reach.ts';

const NAMES = [
  'plane_address',
  'plane_routers',
  'plane_broker',
  'nats_server',
  'nats_max_payload',
] as const;

const BIND_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use',
  EADDRNOTAVAIL: 'this host has no such address',
  ENOTFOUND: 'this host has no such name or interface',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EACCES: 'permission is missing',
};

/** Most ranks whose address is tried. */
const MAX_TRIED = 64;

export async function planeChecks(context: ProbeContext): Promise<Check[]> {
  const { eventPlane, zmqBroker } = context.config;
  let checks: Check[] = [];
  if (eventPlane === 'nats') checks = await natsChecks(context);
  else if (eventPlane === 'zmq' && zmqBroker !== null) {
    checks = [await brokerCheck(zmqBroker, context.ended)];
  } else if (eventPlane === 'zmq') {
    checks = [await addressCheck(context), routersCheck(context)];
  }
  const reason = zmqBroker === null ? `the event plane is ${eventPlane}` : 'a broker is in between';
  const rest = NAMES.filter((name) => !checks.some((check) => check.name === name));
  return [
    ...checks,
    ...rest.map((name) =>
      skipped(name, name === 'plane_broker' && eventPlane === 'zmq' ? 'none is given' : reason),
    ),
  ];
}

async function addressCheck({ config, relay }: ProbeContext): Promise<Check> {
  const name = 'plane_address';
  const { planeEndpoint, dpSize, engineMetrics } = config;
  if (
    relay !== null &&
    holds(
      relay.ranks.map((rank) => rank.plane_endpoint),
      planeEndpoint,
    )
  ) {
    return ok(name, `${planeEndpoint} is held by the relay that runs`);
  }
  const offsets = Array.from({ length: Math.min(dpSize, MAX_TRIED) }, (_, offset) => offset);
  const endpoints = offsets.map((offset) => rankEndpoint(planeEndpoint, offset));
  if (engineMetrics !== null) endpoints.push(loadEndpoint(planeEndpoint, dpSize));
  for (const endpoint of endpoints) {
    const problem = await bindProblem(endpoint);
    if (problem === null) continue;
    const remedy = 'Free it, or give another with --plane-endpoint (port 0 takes a free one)';
    return fail(name, `${endpoint} cannot be bound: ${problem}`, remedy);
  }
  const shown = endpoints.length === 1 ? planeEndpoint : `${endpoints[0]} to ${endpoints.at(-1)}`;
  return ok(name, `${shown} can be bound`);
}

/** By port: what is announced may be another address than the one that is bound. */
function holds(held: readonly (string | null | undefined)[], endpoint: string): boolean {
  const address = parseZmqAddress(endpoint);
  return held.some((one) => {
    const other = parseZmqAddress(one ?? '');
    if (other?.transport === 'tcp' && address?.transport === 'tcp')
      return other.port === address.port;
    return one === endpoint;
  });
}

/** Why it cannot be bound; null where it can. An ipc path is left alone: to bind it makes a file. */
async function bindProblem(endpoint: string): Promise<string | null> {
  if (endpoint.startsWith('ipc://')) {
    const pathProblem = problemOfPath(endpoint.slice('ipc://'.length));
    if (pathProblem !== null) return pathProblem;
    const found = await reach(endpoint, new AbortController().signal);
    return found.kind === 'unreachable' || found.kind === 'late' ? null : 'it is in use';
  }
  const server = createServer();
  try {
    await listen(server, endpoint);
    return null;
  } catch (error) {
    return BIND_PROBLEMS[errorCode(error)] ?? messageOf(error);
  } finally {
    server.close();
  }
}

function problemOfPath(path: string): string | null {
  if (path.startsWith('@')) return null;
  if (!existsSync(dirname(path))) return 'its folder does not exist';
  const isTaken = lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false;
  return isTaken ? 'what is there is no socket' : null;
}

function routersCheck({ config }: ProbeContext): Check {
  const name = 'plane_routers';
  const { planeEndpoint, eventPlaneHost, discovery } = config;
  const told = advertisedEndpoint(numericEndpoint(planeEndpoint), eventPlaneHost);
  if (!isLoopbackEndpoint(told)) return ok(name, `routers connect to ${told}`);
  const remedy =
    discovery === 'none'
      ? 'Where routers run elsewhere, bind the wildcard: --plane-endpoint tcp://*:5570'
      : 'Where routers run elsewhere, set DYN_EVENT_PLANE_HOST to an address of this host';
  return warn(name, `only routers on this host reach ${told}`, remedy);
}

async function brokerCheck(brokers: readonly string[], ended: AbortSignal): Promise<Check> {
  const name = 'plane_broker';
  for (const broker of brokers) {
    const found = await reach(broker, ended);
    if (found.kind === 'zmq') continue;
    const remedy = 'Start the broker, or give --zmq-broker the text that the routers have';
    return fail(name, `${broker}: ${messageOfReach(found)}`, remedy);
  }
  return ok(name, `a ZMQ socket listens at ${brokers.join(', ')}`);
}
