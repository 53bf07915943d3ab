/** Every setting of `run` and `demo`, in the order of the help text. */
import { type DiscoverySettings, discoverySettings } from './discovery-settings.ts';
import { type EngineSettings, engineSettings } from './engine-settings.ts';
import { type LmcacheSettings, lmcacheSettings } from './lmcache-settings.ts';
import { type LmcacheStreamSettings, lmcacheStreamSettings } from './lmcache-stream-settings.ts';
import { type NatsSettings, natsSettings } from './nats-settings.ts';
import { type ProcessSettings, processSettings } from './process-settings.ts';
import { type RecoverySettings, recoverySettings } from './recovery-settings.ts';
import { type RelaySettings, relaySettings } from './relay-settings.ts';
import { type ReplaySettings, replaySettings } from './replay-settings.ts';
import type { Setting, SettingRows } from './setting.ts';
import { type StoreSettings, storeSettings } from './store-settings.ts';
import { type TcpTlsSettings, tcpTlsSettings } from './tcp-tls-settings.ts';

export interface SettingValues
  extends EngineSettings,
    ReplaySettings,
    RelaySettings,
    DiscoverySettings,
    RecoverySettings,
    TcpTlsSettings,
    NatsSettings,
    StoreSettings,
    LmcacheSettings,
    LmcacheStreamSettings,
    ProcessSettings {}

/** The camelCase name of a setting: its key in the table, in `WorkerConfig` and in status. */
export type SettingKey = keyof SettingValues;

export const settingsTable: SettingRows<SettingValues> = {
  ...engineSettings,
  ...replaySettings,
  ...relaySettings,
  ...discoverySettings,
  ...recoverySettings,
  ...tcpTlsSettings,
  ...natsSettings,
  ...storeSettings,
  ...lmcacheSettings,
  ...lmcacheStreamSettings,
  ...processSettings,
};

export const settingKeys: readonly SettingKey[] = Object.keys(settingsTable) as SettingKey[];

export function settingOf(key: SettingKey): Setting<unknown> {
  return settingsTable[key];
}

/** How errors and help call a setting that nobody has named: its flag, else its variable. */
export function settingName(key: SettingKey): string {
  const { flag, environment } = settingOf(key);
  return flag ?? environment ?? key;
}

/** `--max-batch-blocks` → `maxBatchBlocks`, the key in a configuration file. */
export function fileKeyOf(flag: string): string {
  return flag.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
