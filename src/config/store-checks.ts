/** Checks of store sources: what they need, what needs them, and where their stream goes. */
import { formatZmqAddress, MAX_PORT, objectsEndpoint, parseZmqAddress } from './addresses.ts';
import { sourceEndpoint } from './connect-to.ts';
import { isGiven, refusal } from './refusal.ts';
import type { SettingKey, SettingValues } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

/** These mean something to a Mooncake Store alone. */
const MOONCAKE_SETTINGS = [
  'mooncakeMaster',
  'mooncakeKeyPattern',
  'mooncakeTier',
  'mooncakeReconcileSeconds',
  'mooncakeHoldBytes',
] as const satisfies readonly SettingKey[];

const NEED_STORE =
  '--mooncake-endpoint, --lmcache-stream, --lmcache-bridge or --lmcache-coordinator-listen beside it';
/** The bound of what all of them hold. */
const NEED_OBJECTS =
  '--mooncake-endpoint, --lmcache-stream or --lmcache-coordinator-listen beside it';

/** Their objects are published. */
function hasObjects(values: SettingValues): boolean {
  const { mooncakeEndpoint, lmcacheStream, lmcacheCoordinatorListen } = values;
  return mooncakeEndpoint !== null || lmcacheStream !== null || lmcacheCoordinatorListen !== null;
}

/** Where the Mooncake Store is connected to; null where there is none. */
export function checkStores(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): string | null {
  const { mooncakeEndpoint, engine } = values;
  if (engine === 'none' && !hasObjects(values) && values.lmcacheBridge === null) {
    throw refusal('engine', given, 'leaves nothing to follow', NEED_STORE);
  }
  if (hasObjects(values)) checkPlane(values, given);
  else if (isGiven('mooncakeMaxObjects', given)) {
    throw refusal('mooncakeMaxObjects', given, 'has no store to go with', NEED_OBJECTS);
  }
  if (mooncakeEndpoint === null) {
    const unused = MOONCAKE_SETTINGS.find((key) => isGiven(key, given));
    if (unused === undefined) return null;
    throw refusal(unused, given, 'has no store to go with', '--mooncake-endpoint beside it');
  }
  if (engine === 'none' && values.mooncakeKeyPattern !== null) {
    const problem = 'places blocks that an engine has shown';
    throw refusal('mooncakeKeyPattern', given, problem, 'an --engine beside it');
  }
  return sourceEndpoint('mooncakeEndpoint', mooncakeEndpoint, given, warnings);
}

/** The stream has an address of its own on the ZMQ plane. */
function checkPlane(
  { eventPlane, planeEndpoint, dpSize }: SettingValues,
  given: GivenSettings,
): void {
  if (eventPlane !== 'zmq') return;
  const endpoint = objectsEndpoint(formatZmqAddress(planeEndpoint), dpSize);
  const address = parseZmqAddress(endpoint);
  if (address !== undefined && (address.transport === 'ipc' || address.port <= MAX_PORT)) return;
  const allowed = 'one that leaves room for two further ports or a longer path';
  throw refusal('planeEndpoint', given, `makes the object stream's address ${endpoint}`, allowed);
}
