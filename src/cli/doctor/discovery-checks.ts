/** What the registry shows: who keeps records alive, our worker, its card, and who else claims its events. */
import { hostname } from 'node:os';
import { rankEndpoint } from '../../config/addresses.ts';
import {
  type Bucket,
  instanceIdOf,
  instancePrefix,
  type KvEndpoint,
  sourcePrefix,
} from '../../protocol/discovery-keys.ts';
import { readSourceClaim, type SourceClaim } from '../../protocol/discovery-records.ts';
import { readModelCard } from '../../protocol/model-card.ts';
import { cardProblems } from '../../router/card-check.ts';
import { chooseWorker } from '../../router/discovery/worker-choice.ts';
import { isSameMark } from '../../router/rank-presence.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { orEnd, type ProbeContext } from './context.ts';
import { type RegistryView, readRegistry, type SeenRecords } from './registry.ts';
import { routerCheck } from './router-check.ts';

export interface Claims {
  /** Of others, alive, for ranks of ours. */
  readonly foreign: readonly SourceClaim[];
  /** Those that carry our own mark. */
  readonly marked: readonly SourceClaim[];
}

const MAX_LISTED = 8;
const NONE: SeenRecords = new Map();

export async function discoveryChecks(context: ProbeContext): Promise<Check[]> {
  const { config, ended } = context;
  const view = await orEnd(readRegistry(config), ended);
  if (view?.records == null) {
    const backend =
      view?.backend ??
      fail('discovery_backend', 'no answer in time', 'See whether it runs, or wait with --seconds');
    const reason = 'the registry cannot be read';
    const rest = [
      'discovery_records',
      'worker',
      'worker_card',
      'ambiguous_source',
      'router',
    ] as const;
    return [backend, ...rest.map((name) => skipped(name, reason))];
  }
  const endpoint = endpointOf(context);
  const claims = claimsIn(aliveIn(view, 'v1/event_sources'), context);
  const { check: worker, workerId } = workerCheck(view, claims, context);
  return [
    view.backend,
    recordsCheck(view),
    worker,
    cardCheck(aliveIn(view, 'v1/mdc'), workerId, endpoint, context),
    sourceCheck(claims, workerId, context),
    routerCheck(view, context),
  ];
}

function endpointOf({ config }: ProbeContext): KvEndpoint {
  const { namespace, component, endpoint } = config;
  return { namespace, component, endpoint };
}

function aliveIn({ records }: RegistryView, bucket: Bucket): ReadonlyMap<string, string> {
  const all = records?.get(bucket) ?? NONE;
  return new Map([...all].flatMap(([key, { value, isAlive }]) => (isAlive ? [[key, value]] : [])));
}

function recordsCheck({ records }: RegistryView): Check {
  const name = 'discovery_records';
  const all = [...(records?.values() ?? [])].flatMap((bucket) => [...bucket.values()]);
  const alive = all.filter(({ isAlive }) => isAlive).length;
  const expired = all.length - alive;
  const text = `${alive} records are kept alive${expired > 0 ? `, ${expired} have expired` : ''}`;
  if (alive > 0) return ok(name, text);
  const remedy =
    'Start the worker, and give the registry that it uses (DYN_FILE_KV, ETCD_ENDPOINTS)';
  return warn(name, `${text}: nobody uses this registry now`, remedy);
}

function workerCheck(
  view: RegistryView,
  { foreign }: Claims,
  context: ProbeContext,
): { readonly check: Check; readonly workerId: bigint | null } {
  const name = 'worker';
  const endpoint = endpointOf(context);
  const prefix = instancePrefix(endpoint);
  const shown = `${endpoint.namespace}/${endpoint.component}/${endpoint.endpoint}`;
  const ids = [...aliveIn(view, 'v1/instances').keys()].map((key) => instanceIdOf(key, prefix));
  const workerIds = ids.filter((id) => id !== null);
  const given = context.config.workerId;
  if (given !== null) {
    if (workerIds.includes(given)) {
      return { check: ok(name, `worker ${hex(given)} serves ${shown}`), workerId: given };
    }
    const found = workerIds.length === 0 ? 'nobody' : listed(workerIds);
    const remedy = 'Give --worker-id auto, or the id of the worker beside this relay';
    const text = `${hex(given)} does not serve ${shown}; ${found} does`;
    return { check: fail(name, text, remedy), workerId: given };
  }
  const claimed = new Set(foreign.map(({ workerId }) => workerId));
  const choice = chooseWorker({ current: runningWorker(context), workerIds, claimed });
  if (choice.kind === 'missing') {
    const remedy = 'Start the worker, or correct --namespace, --component and --endpoint';
    return { check: fail(name, `nobody serves ${shown}`, remedy), workerId: null };
  }
  if (choice.kind === 'ambiguous') {
    const remedy = 'Give --worker-id the one beside this relay';
    const text = `several workers serve ${shown}: ${listed(choice.workerIds)}`;
    return { check: fail(name, text, remedy), workerId: null };
  }
  const { workerId } = choice;
  return { check: ok(name, `worker ${hex(workerId)} serves ${shown}`), workerId };
}

/** Chosen already by the relay that runs. */
function runningWorker({ relay }: ProbeContext): bigint | null {
  const id = relay?.ranks[0]?.worker_id ?? '';
  return /^\d{1,20}$/.test(id) ? BigInt(id) : null;
}

function cardCheck(
  cards: ReadonlyMap<string, string>,
  workerId: bigint | null,
  endpoint: KvEndpoint,
  { config, isBlockSizeGiven }: ProbeContext,
): Check {
  const name = 'worker_card';
  if (workerId === null) return skipped(name, 'there is no one worker');
  const prefix = instancePrefix(endpoint);
  const found = [...cards].find(([key]) => instanceIdOf(key, prefix) === workerId);
  const card = found === undefined ? null : readModelCard(found[1]);
  if (card === null) {
    const remedy =
      'Wait until the worker has loaded its model; routers ignore a worker without one';
    const text = `worker ${hex(workerId)} has ${found === undefined ? 'no' : 'an unreadable'} model card`;
    return fail(name, text, remedy);
  }
  const dpRanks = ranksOf(config);
  const blockSize = isBlockSizeGiven ? config.blockSize : (card.blockSize ?? config.blockSize);
  const problems = cardProblems(card, { endpoint, dpRanks, blockSize });
  if (problems.length > 0) {
    const texts = problems.map(({ message, fields }) => `${message} (${fieldsText(fields)})`);
    return fail(name, 'the model card contradicts the settings', texts.join('; '));
  }
  const size = card.blockSize === null ? '' : ` in blocks of ${card.blockSize} tokens`;
  return ok(name, `ranks ${card.dpRank} to ${card.dpRank + card.dpSize - 1}${size}`);
}

function sourceCheck(
  { foreign, marked }: Claims,
  workerId: bigint | null,
  { relay }: ProbeContext,
): Check {
  const name = 'ambiguous_source';
  if (workerId === null) return skipped(name, 'there is no one worker');
  const other = foreign.find((claim) => claim.workerId === workerId);
  if (other !== undefined) {
    const text = `another source claims worker ${hex(workerId)}, rank ${other.dpRank}: routers follow neither`;
    const remedy =
      'Stop it: start the worker without its own event publisher (bridges/dynamo), or the other relay';
    return fail(name, text, remedy);
  }
  if (marked.some((claim) => claim.workerId === workerId)) {
    const text =
      'a relay on this host for this engine runs, or has ended without taking its source away';
    const remedy = 'Run one relay an engine; what an ended one has left is taken away at the start';
    return warn(name, text, remedy);
  }
  return ok(
    name,
    relay === null ? 'nobody else claims this worker' : 'only the relay that runs claims it',
  );
}

function claimsIn(sources: ReadonlyMap<string, string>, context: ProbeContext): Claims {
  const { config, relay } = context;
  const endpoint = endpointOf(context);
  const ranks = ranksOf(config);
  const own = new Set(relay?.ranks.map(({ publisher_id }) => publisher_id) ?? []);
  const prefix = sourcePrefix(endpoint);
  const claims = [...sources].flatMap(([key, value]) => {
    const claim = key.startsWith(prefix) ? readSourceClaim(value, endpoint) : null;
    const isOther = claim !== null && ranks.includes(claim.dpRank);
    return isOther && !own.has(String(claim.publisherId)) ? [claim] : [];
  });
  const isMarked = ({ mark, dpRank }: SourceClaim): boolean =>
    isSameMark(mark, { host: hostname(), engineEndpoint: engineOf(dpRank, config) });
  return {
    foreign: claims.filter((claim) => !isMarked(claim)),
    marked: claims.filter(isMarked),
  };
}

function engineOf(dpRank: number, config: ProbeContext['config']): string {
  const offset = config.engineSockets === 'shared' ? 0 : dpRank - config.dpRank;
  return rankEndpoint(config.engineEndpoint, offset);
}

function ranksOf({ dpRank, dpSize }: ProbeContext['config']): number[] {
  return Array.from({ length: dpSize }, (_, offset) => dpRank + offset);
}

function fieldsText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`)
    .join(', ');
}

function hex(workerId: bigint): string {
  return workerId.toString(16);
}

function listed(workerIds: readonly bigint[]): string {
  const rest = workerIds.length - MAX_LISTED;
  return `${workerIds.slice(0, MAX_LISTED).map(hex).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
