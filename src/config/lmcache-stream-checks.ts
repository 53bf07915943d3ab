/** Checks of LMCache's event stream: what needs it, what it needs, and where it is connected to. */
import { sourceEndpoint } from './connect-to.ts';
import { isGiven, refusal } from './refusal.ts';
import type { SettingKey, SettingValues } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

/** These mean something beside a stream alone. */
const STREAM_SETTINGS = [
  'lmcacheModel',
  'lmcacheStreamModels',
  'lmcacheStreamInstance',
  'lmcacheStreamMaxEvents',
  'lmcacheL1Tier',
  'lmcacheL2Tier',
] as const satisfies readonly SettingKey[];

/** These are about chunks of any source. */
const PLACEMENT_SETTINGS = ['lmcacheModel', 'lmcacheL1Tier', 'lmcacheL2Tier'] as const;

/** As it is connected to; null where there is none. */
export function checkLmcacheStream(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): string | null {
  const { lmcacheStream } = values;
  if (lmcacheStream === null) {
    const unused = STREAM_SETTINGS.find(
      (key) => isGiven(key, given) && !isUsedByBatches(key, values),
    );
    if (unused === undefined) return null;
    const isPlacement = (PLACEMENT_SETTINGS as readonly SettingKey[]).includes(unused);
    const allowed = `--lmcache-stream ${isPlacement ? 'or --lmcache-instance ' : ''}beside it`;
    throw refusal(unused, given, 'has no stream to go with', allowed);
  }
  checkModels(values, given);
  return sourceEndpoint('lmcacheStream', lmcacheStream, given, warnings);
}

function isUsedByBatches(key: SettingKey, { lmcacheInstance }: SettingValues): boolean {
  return lmcacheInstance !== null && (PLACEMENT_SETTINGS as readonly SettingKey[]).includes(key);
}

function checkModels(values: SettingValues, given: GivenSettings): void {
  const { lmcacheModel, lmcacheStreamModels, engine } = values;
  if (lmcacheModel === null && (engine !== 'none' || lmcacheStreamModels === null)) {
    const allowed = '--lmcache-model beside it';
    throw refusal('lmcacheStream', given, 'lacks a model to follow', allowed);
  }
  if (lmcacheModel !== null && lmcacheStreamModels?.includes(lmcacheModel)) {
    const problem = 'has the model of --lmcache-model as well';
    throw refusal('lmcacheStreamModels', given, problem, 'the other models');
  }
  const placed = (['lmcacheL1Tier', 'lmcacheL2Tier'] as const).find((key) => isGiven(key, given));
  if (engine !== 'none' || placed === undefined) return;
  const problem = 'says where routers of an engine see chunks';
  throw refusal(placed, given, problem, 'an --engine beside it');
}
