/** Warnings about what was given and has no effect: no reason not to start, but not silent either. */
import { knownVariables } from './lookup.ts';
import { usesNats } from './recovery-settings.ts';
import { type SettingValues, settingKeys, settingOf } from './settings-table.ts';
import type { Environment, GivenSettings } from './sources.ts';

/** Kubernetes sets such variables for a service that is called kvrelay. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT)(_|$)|_PORT(_|$)/;

export function environmentWarnings(env: Environment): string[] {
  const warnings: string[] = [];
  for (const variable of Object.keys(env).sort()) {
    if (!variable.startsWith('KVRELAY_') || knownVariables.has(variable)) continue;
    if (SERVICE_LINK.test(variable)) continue;
    warnings.push(`${variable} is no setting of kvrelay and has no effect: check the spelling`);
  }
  return warnings;
}

/** Settings of another event plane or discovery. From the environment they may be meant for other processes. */
export function unusedWarnings(values: SettingValues, given: GivenSettings): string[] {
  const { discovery, eventPlane, onEngineGap, replayEndpoint } = values;
  const warnings: string[] = [];
  const replay = given.get('replayEndpoint');
  if (replayEndpoint !== null && onEngineGap === 'count') {
    warnings.push(`${replay?.name} has no effect: missing batches are only counted`);
  }
  for (const key of settingKeys) {
    const { onlyOnPlane, onlyWithDiscovery } = settingOf(key);
    const setting = given.get(key);
    if (setting?.source !== 'flag' && setting?.source !== 'file') continue;
    const isOfPlane = onlyOnPlane === eventPlane || (onlyOnPlane === 'nats' && usesNats(values));
    if (onlyOnPlane !== undefined && !isOfPlane) {
      warnings.push(`${setting.name} has no effect: the event plane is ${eventPlane}`);
    }
    const isUsed =
      onlyWithDiscovery === 'any' ? discovery !== 'none' : onlyWithDiscovery === discovery;
    if (onlyWithDiscovery !== undefined && !isUsed) {
      warnings.push(`${setting.name} has no effect: discovery is ${discovery}`);
    }
  }
  return warnings;
}
