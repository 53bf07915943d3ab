/** Warnings about what was given and has no effect: no reason not to start, but not silent either. */
import { knownVariables } from './lookup.ts';
import { unusedHostVariables } from './not-yet.ts';
import { usesNats } from './recovery-settings.ts';
import { type SettingValues, settingKeys, settingOf } from './settings-table.ts';
import type { Environment, GivenSettings } from './sources.ts';

/** Kubernetes sets such variables for a service that is called kvrelay. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT)(_|$)|_PORT(_|$)/;

export function environmentWarnings(env: Environment): string[] {
  const warnings: string[] = [];
  for (const [variable, effect] of unusedHostVariables) {
    const value = env[variable];
    if (!value || value === 'none') continue;
    warnings.push(`${variable} is set but not used yet: ${effect}`);
  }
  for (const variable of Object.keys(env).sort()) {
    if (variable.startsWith('DYN_TCP_TLS_') && env[variable]) {
      warnings.push(`${variable} is set but not used yet: router queries are answered without TLS`);
    }
    if (!variable.startsWith('KVRELAY_') || knownVariables.has(variable)) continue;
    if (SERVICE_LINK.test(variable)) continue;
    warnings.push(`${variable} is no setting of kvrelay and has no effect: check the spelling`);
  }
  return warnings;
}

/** Settings of a plane that is not used. From the environment they may be meant for other processes. */
export function unusedWarnings(values: SettingValues, given: GivenSettings): string[] {
  const { eventPlane } = values;
  const warnings: string[] = [];
  for (const key of settingKeys) {
    const { onlyOnPlane } = settingOf(key);
    const setting = given.get(key);
    if (onlyOnPlane === undefined || onlyOnPlane === eventPlane) continue;
    if (onlyOnPlane === 'nats' && usesNats(values)) continue;
    if (setting?.source !== 'flag' && setting?.source !== 'file') continue;
    warnings.push(`${setting.name} has no effect: the event plane is ${eventPlane}`);
  }
  return warnings;
}
