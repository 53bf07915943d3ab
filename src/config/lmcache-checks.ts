/** Checks of LMCache's bridge and coordinator: what needs them, and where they are. */
import {
  connectable,
  connectableHttp,
  formatHttpAddress,
  formatZmqAddress,
  MAX_PORT,
  type ZmqAddress,
} from './addresses.ts';
import { nameOf, refusal } from './refusal.ts';
import type { SettingKey, SettingValues } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

/** These mean something beside a bridge alone. */
const BRIDGE_SETTINGS = [
  'lmcacheReplay',
  'lmcacheSamplePercent',
  'lmcacheLabelValues',
  'lmcacheMaxTracked',
  'lmcacheMaxPending',
  'lmcachePairTimeoutS',
  'lmcacheRequestTimeoutS',
] as const satisfies readonly SettingKey[];

/** These mean something where LMCache's servers post alone. */
const COORDINATOR_SETTINGS = [
  'lmcacheCoordinatorForward',
  'lmcacheCoordinatorMaxBytes',
  'lmcacheMaxKeys',
  'lmcacheInstanceTimeoutS',
  'lmcacheInstance',
] as const satisfies readonly SettingKey[];

export interface LmcacheEndpoints {
  readonly lmcacheBridge: string | null;
  readonly lmcacheReplay: string | null;
}

/** As they are connected to; null where there is none. */
export function checkLmcache(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): LmcacheEndpoints {
  const { lmcacheBridge, lmcacheReplay } = values;
  checkCoordinator(values, given);
  if (lmcacheBridge === null) {
    const unused = BRIDGE_SETTINGS.find((key) => isGiven(key, given));
    if (unused !== undefined)
      throw refusal(unused, given, 'has no bridge to go with', '--lmcache-bridge beside it');
    return { lmcacheBridge: null, lmcacheReplay: null };
  }
  return {
    lmcacheBridge: endpointOf('lmcacheBridge', lmcacheBridge, given, warnings),
    lmcacheReplay: lmcacheReplay && endpointOf('lmcacheReplay', lmcacheReplay, given, warnings),
  };
}

function checkCoordinator(values: SettingValues, given: GivenSettings): void {
  const { lmcacheCoordinatorListen, lmcacheCoordinatorForward, engine } = values;
  const { lmcacheInstance, lmcacheModel } = values;
  if (lmcacheCoordinatorListen === null) {
    const unused = COORDINATOR_SETTINGS.find((key) => isGiven(key, given));
    if (unused === undefined) return;
    throw refusal(
      unused,
      given,
      'has no endpoint to go with',
      '--lmcache-coordinator-listen beside it',
    );
  }
  if (lmcacheInstance !== null && lmcacheModel === null) {
    throw refusal(
      'lmcacheInstance',
      given,
      'lacks the model to place',
      '--lmcache-model beside it',
    );
  }
  if (lmcacheInstance !== null && engine === 'none') {
    const problem = 'says which chunks routers of an engine see';
    throw refusal('lmcacheInstance', given, problem, 'an --engine beside it');
  }
  if (lmcacheCoordinatorForward === null) return;
  const own = connectableHttp(lmcacheCoordinatorListen);
  if (
    own.port > 0 &&
    new URL(`http://${formatHttpAddress(own)}`).origin === lmcacheCoordinatorForward
  ) {
    throw refusal(
      'lmcacheCoordinatorForward',
      given,
      'is the address that is listened on',
      "the coordinator's own address",
    );
  }
}

function isGiven(key: SettingKey, given: GivenSettings): boolean {
  const source = given.get(key)?.source;
  return source !== undefined && source !== 'default';
}

function endpointOf(
  key: 'lmcacheBridge' | 'lmcacheReplay',
  address: ZmqAddress,
  given: GivenSettings,
  warnings: string[],
): string {
  const endpoint = connectable(address);
  if (endpoint.transport === 'tcp' && (endpoint.port < 1 || endpoint.port > MAX_PORT))
    throw refusal(key, given, 'has no port that can be connected to', `ports 1 to ${MAX_PORT}`);
  if (endpoint !== address) {
    warnings.push(
      `${nameOf(key, given)} ${formatZmqAddress(address)} cannot be connected to: ` +
        `${formatZmqAddress(endpoint)} is used`,
    );
  }
  return formatZmqAddress(endpoint);
}
