/** Checks of LMCache's bridge and coordinator: what needs them, and where they are. */
import { connectableHttp, formatHttpAddress } from './addresses.ts';
import { sourceEndpoint } from './connect-to.ts';
import { isGiven, refusal } from './refusal.ts';
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
    lmcacheBridge: sourceEndpoint('lmcacheBridge', lmcacheBridge, given, warnings),
    lmcacheReplay: lmcacheReplay && sourceEndpoint('lmcacheReplay', lmcacheReplay, given, warnings),
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
