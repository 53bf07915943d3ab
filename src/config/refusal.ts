/** What the checks of several settings have in common: how they name and refuse them. */
import { ConfigError, messageOf } from '../errors.ts';
import { type SettingKey, settingName, settingOf } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

/** As the user wrote it, else as the table has it. */
export function nameOf(key: SettingKey, given: GivenSettings): string {
  return given.get(key)?.name ?? settingName(key);
}

export function refusal(
  key: SettingKey,
  given: GivenSettings,
  problem: string,
  allowed: string,
): ConfigError {
  const value = given.get(key)?.text ?? '';
  const { remedy } = settingOf(key);
  return new ConfigError({ setting: nameOf(key, given), value, problem, allowed, remedy });
}

/** Set by the user, in whatever way. */
export function isGiven(key: SettingKey, given: GivenSettings): boolean {
  const setting = given.get(key);
  return setting !== undefined && setting.source !== 'default';
}

/** Throws where one of the two is given without the other. */
export function checkPair(first: SettingKey, second: SettingKey, given: GivenSettings): void {
  if (given.has(first) === given.has(second)) return;
  const [present, missing] = given.has(first) ? [first, second] : [second, first];
  throw new ConfigError({
    setting: nameOf(missing, given),
    problem: `is missing beside ${nameOf(present, given)}`,
    allowed: 'both or neither',
    remedy: 'Set the missing one, or unset the other',
  });
}

/** Throws where the file that a setting names cannot be read; null names none. */
export function checkReadable(
  key: SettingKey,
  path: string | null,
  given: GivenSettings,
  readFile: (path: string) => string,
): void {
  if (path === null) return;
  try {
    readFile(path);
  } catch (error) {
    throw new ConfigError({
      setting: nameOf(key, given),
      value: path,
      problem: `cannot be read (${messageOf(error)})`,
      allowed: 'a readable file',
      remedy: 'Correct the path or the permissions of the file',
    });
  }
}

/** Throws where servers without TLS have a setting that TLS alone needs. */
export function checkTls(
  serversKey: SettingKey,
  plainServer: string | undefined,
  tlsSetting: SettingKey | undefined,
  given: GivenSettings,
  scheme: 'tls' | 'https',
): void {
  if (plainServer === undefined || tlsSetting === undefined) return;
  throw new ConfigError({
    setting: nameOf(serversKey, given),
    value: plainServer,
    problem: `contradicts ${nameOf(tlsSetting, given)}`,
    allowed: `${scheme}:// servers only`,
    remedy: `Write ${scheme}:// for every server, or unset the variable`,
  });
}
