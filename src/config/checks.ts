/** Checks that need more than one setting. */
import { ConfigError, messageOf } from '../errors.ts';
import { connectable, formatZmqAddress, MAX_PORT, type ZmqAddress } from './addresses.ts';
import { U32_MAX } from './kinds.ts';
import { usesNats } from './recovery-settings.ts';
import {
  type SettingKey,
  type SettingValues,
  settingKeys,
  settingName,
  settingOf,
} from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

type Addresses = Pick<SettingValues, 'engineEndpoint' | 'planeEndpoint'>;

/** Both addresses as they are used: every rank's port exists, and wildcards are only bound. */
export function checkAddresses(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): Addresses {
  const { dpRank, dpSize, engineEndpoint, planeEndpoint, engineBind } = values;
  if (dpRank + dpSize - 1 > U32_MAX) {
    throw refusal('dpRank', given, `gives rank ${dpRank + dpSize - 1}`, `ranks 0 to ${U32_MAX}`);
  }
  const isShared = values.engineSockets === 'shared';
  checkPorts('engineEndpoint', { ...values, dpSize: isShared ? 1 : dpSize }, given);
  if (!isFreePort(planeEndpoint)) checkPorts('planeEndpoint', values, given);
  // In strict a socket has one relay, under whose ids all its events go, as one Dynamo publisher has.
  if (isShared && dpSize > 1 && values.compat === 'strict') {
    const allowed = '--dp-size 1 with it, or --compat safe';
    throw refusal('engineSockets', given, 'contradicts --compat strict and several ranks', allowed);
  }
  return {
    engineEndpoint: engineBind
      ? engineEndpoint
      : connectTo(engineEndpoint, nameOf('engineEndpoint', given), warnings),
    planeEndpoint,
  };
}

function checkPorts(key: keyof Addresses, values: SettingValues, given: GivenSettings): void {
  const address = values[key];
  const { dpRank, dpSize } = values;
  if (address.transport === 'ipc') {
    if (dpSize === 1) return;
    throw refusal(key, given, `has no port for each of ${dpSize} ranks`, 'tcp://HOST:PORT');
  }
  for (let offset = 0; offset < dpSize; offset++) {
    const port = address.port + offset;
    if (port >= 1 && port <= MAX_PORT) continue;
    throw refusal(
      key,
      given,
      `gives rank ${dpRank + offset} port ${port}`,
      `ports 1 to ${MAX_PORT}`,
    );
  }
}

function isFreePort(address: ZmqAddress): boolean {
  return address.transport === 'tcp' && address.port === 0;
}

function connectTo(address: ZmqAddress, name: string, warnings: string[]): ZmqAddress {
  const rewritten = connectable(address);
  if (rewritten === address) return address;
  warnings.push(
    `${name} ${formatZmqAddress(address)} cannot be connected to: ` +
      `${formatZmqAddress(rewritten)} is used`,
  );
  return rewritten;
}

/** `strict` is Dynamo's behaviour: what tunes something it does not have contradicts it. */
export function checkCompat({ compat }: SettingValues, given: GivenSettings): void {
  if (compat !== 'strict') return;
  for (const key of settingKeys) {
    const { strictLacks } = settingOf(key);
    const setting = given.get(key);
    if (strictLacks === undefined || setting === undefined || setting.source === 'default')
      continue;
    throw new ConfigError({
      setting: setting.name,
      value: setting.text,
      problem: `contradicts ${nameOf('compat', given)} strict, which ${strictLacks}`,
      allowed: 'one of the two',
      remedy: `Leave it out, or give ${settingName('compat')} safe`,
    });
  }
}

const AUTH_METHODS = [
  'natsAuthUsername',
  'natsAuthToken',
  'natsAuthNkey',
  'natsAuthCredentialsFile',
] as const;
const TLS_FILES = ['natsTlsCaCertPath', 'natsTlsClientCertPath', 'natsTlsClientKeyPath'] as const;
const TLS_SETTINGS: readonly SettingKey[] = [...TLS_FILES, 'natsTlsInsecure'];

/** Only where NATS is used: else these variables are there for other processes. */
export function checkNatsAccess(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): void {
  if (!usesNats(values)) return;
  checkPair('natsAuthUsername', 'natsAuthPassword', given);
  checkPair('natsTlsClientCertPath', 'natsTlsClientKeyPath', given);
  const plain = values.natsServer.find((server) => !server.startsWith('tls://'));
  const tlsSetting = TLS_SETTINGS.find((key) => values[key]);
  if (plain !== undefined && tlsSetting !== undefined) {
    throw new ConfigError({
      setting: nameOf('natsServer', given),
      value: plain,
      problem: `contradicts ${nameOf(tlsSetting, given)}`,
      allowed: 'tls:// servers only',
      remedy: 'Write tls:// for every server, or unset the variable',
    });
  }
  const methods = AUTH_METHODS.filter((key) => values[key] !== null).map((key) =>
    nameOf(key, given),
  );
  for (const unused of methods.slice(1)) {
    warnings.push(`${unused} is not used: ${methods[0]} comes first`);
  }
}

/** Files that the NATS connection is going to read, and the form of an NKey; never their content. */
export function checkNatsFiles(
  values: SettingValues,
  given: GivenSettings,
  readFile: (path: string) => string,
): void {
  if (!usesNats(values)) return;
  const method = AUTH_METHODS.find((key) => values[key] !== null);
  if (method === 'natsAuthNkey' && !/^SU[A-Z2-7]{56}$/.test(values.natsAuthNkey ?? '')) {
    throw new ConfigError({
      setting: nameOf('natsAuthNkey', given),
      problem: 'is no NKey seed',
      allowed: 'the seed of a user: SU and 56 more letters and digits',
      remedy: 'Give the seed itself, not its public key or the path of a file',
    });
  }
  const files = [...(method === 'natsAuthCredentialsFile' ? [method] : []), ...TLS_FILES];
  for (const key of files) {
    const path = values[key];
    if (path === null) continue;
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
}

function checkPair(first: SettingKey, second: SettingKey, given: GivenSettings): void {
  if (given.has(first) === given.has(second)) return;
  const [present, missing] = given.has(first) ? [first, second] : [second, first];
  throw new ConfigError({
    setting: nameOf(missing, given),
    problem: `is missing beside ${nameOf(present, given)}`,
    allowed: 'both or neither',
    remedy: 'Set the missing one, or unset the other',
  });
}

function refusal(
  key: SettingKey,
  given: GivenSettings,
  problem: string,
  allowed: string,
): ConfigError {
  const value = given.get(key)?.text ?? '';
  const { remedy } = settingOf(key);
  return new ConfigError({ setting: nameOf(key, given), value, problem, allowed, remedy });
}

function nameOf(key: SettingKey, given: GivenSettings): string {
  return given.get(key)?.name ?? settingName(key);
}
