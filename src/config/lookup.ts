/** Finds settings by the names users write. Maps, so that `constructor` is as unknown as any slip. */
import { type NotYet, notYetSettings } from './not-yet.ts';
import { fileKeyOf, type SettingKey, settingKeys, settingOf } from './settings-table.ts';

export const keyByFlag: ReadonlyMap<string, SettingKey> = new Map(
  settingKeys.flatMap((key) => {
    const { flag } = settingOf(key);
    return flag === null ? [] : [[flag, key]];
  }),
);

export const keyByFileKey: ReadonlyMap<string, SettingKey> = new Map(
  settingKeys.map((key) => {
    const { flag } = settingOf(key);
    return [flag === null ? key : fileKeyOf(flag), key];
  }),
);

export const notYetByFlag: ReadonlyMap<string, NotYet> = new Map(
  notYetSettings.flatMap((setting) => (setting.flag === null ? [] : [[setting.flag, setting]])),
);

export const notYetByFileKey: ReadonlyMap<string, NotYet> = new Map(
  [...notYetByFlag].map(([flag, setting]) => [fileKeyOf(flag), setting]),
);

/** Every variable that means something to kvrelay, supported or not. */
export const knownVariables: ReadonlySet<string> = new Set(
  [...settingKeys.map(settingOf), ...notYetSettings].flatMap(
    ({ environment }) => environment ?? [],
  ),
);
