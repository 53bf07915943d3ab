/** The settings as status shows them: JSON-safe, and without anything secret. */
import { formatHttpAddress } from './addresses.ts';
import { type SettingKey, settingKeys, settingOf } from './settings-table.ts';
import type { WorkerConfig } from './worker-config.ts';

export type ShownValue = string | number | boolean | null;

/** A secret that is set reads `***`; a u64 is a decimal string; HTTP is an address or `off`. */
export function maskedSettings(config: WorkerConfig): Record<SettingKey, ShownValue> {
  const shown: Partial<Record<SettingKey, ShownValue>> = {};
  for (const key of settingKeys) shown[key] = shownValue(config, key);
  return shown as Record<SettingKey, ShownValue>;
}

function shownValue(config: WorkerConfig, key: SettingKey): ShownValue {
  if (settingOf(key).secret) return config[key] === null ? null : '***';
  if (key === 'http') return config.http === null ? 'off' : formatHttpAddress(config.http);
  if (key === 'lmcacheCoordinatorListen') {
    return config[key] === null ? null : formatHttpAddress(config[key]);
  }
  if (key === 'natsServer' || key === 'etcdEndpoints') return config[key].join(',');
  if (key === 'zmqBroker') return config.zmqBroker?.join(';') ?? null;
  if (key === 'lmcacheStreamModels') return config.lmcacheStreamModels?.join(',') ?? null;
  if (key === 'workerId') return config.workerId?.toString() ?? 'auto';
  return config[key];
}
