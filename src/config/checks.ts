/** Checks that need more than one setting. */
import { ConfigError } from '../errors.ts';
import {
  formatZmqAddress,
  loadEndpoint,
  MAX_PORT,
  parseZmqAddress,
  type ZmqAddress,
} from './addresses.ts';
import { connectTo } from './connect-to.ts';
import { planeBindAddress } from './discovery-checks.ts';
import { U32_MAX } from './kinds.ts';
import { usesNats } from './recovery-settings.ts';
import { checkPair, checkReadable, checkTls, nameOf, refusal } from './refusal.ts';
import {
  type SettingKey,
  type SettingValues,
  settingKeys,
  settingName,
  settingOf,
} from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

type Addresses = Pick<SettingValues, 'engineEndpoint' | 'replayEndpoint' | 'planeEndpoint'>;

/** The addresses as they are used: every rank's port exists, and wildcards are only bound. */
export function checkAddresses(
  values: SettingValues,
  given: GivenSettings,
  warnings: string[],
): Addresses {
  const { dpRank, dpSize, engineEndpoint, replayEndpoint, planeEndpoint, engineBind } = values;
  if (dpRank + dpSize - 1 > U32_MAX) {
    throw refusal('dpRank', given, `gives rank ${dpRank + dpSize - 1}`, `ranks 0 to ${U32_MAX}`);
  }
  const isShared = values.engineSockets === 'shared';
  const sockets = isShared ? 1 : dpSize;
  checkPorts('engineEndpoint', engineEndpoint, { ...values, dpSize: sockets }, given);
  if (replayEndpoint !== null) {
    checkPorts('replayEndpoint', replayEndpoint, { ...values, dpSize: sockets }, given);
    checkApart(engineEndpoint, replayEndpoint, sockets, given);
  }
  if (!isFreePort(planeEndpoint)) checkPorts('planeEndpoint', planeEndpoint, values, given);
  // In strict a socket has one relay, under whose ids all its events go, as one Dynamo publisher has.
  if (isShared && dpSize > 1 && values.compat === 'strict') {
    const allowed = '--dp-size 1 with it, or --compat safe';
    throw refusal('engineSockets', given, 'contradicts --compat strict and several ranks', allowed);
  }
  return {
    engineEndpoint: engineBind
      ? engineEndpoint
      : connectTo(engineEndpoint, nameOf('engineEndpoint', given), warnings),
    // The engine binds it, whatever it does with its other socket.
    replayEndpoint:
      replayEndpoint && connectTo(replayEndpoint, nameOf('replayEndpoint', given), warnings),
    planeEndpoint: planeBindAddress(values),
  };
}

/** Ranks count up from both ports, so one of them must not run into the other. */
function checkApart(
  engine: ZmqAddress,
  replay: ZmqAddress,
  sockets: number,
  given: GivenSettings,
): void {
  const areApart =
    engine.transport === 'tcp' && replay.transport === 'tcp'
      ? engine.host !== replay.host || Math.abs(engine.port - replay.port) >= sockets
      : formatZmqAddress(engine) !== formatZmqAddress(replay);
  if (areApart) return;
  const problem = `is the address of an engine's events (${formatZmqAddress(engine)})`;
  throw refusal('replayEndpoint', given, problem, 'another port for each rank');
}

function checkPorts(
  key: keyof Addresses,
  address: ZmqAddress,
  { dpRank, dpSize }: Pick<SettingValues, 'dpRank' | 'dpSize'>,
  given: GivenSettings,
): void {
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

/** Only some engines name what worker load is made of, and the ZMQ plane needs an address for it. */
export function checkEngineMetrics(values: SettingValues, given: GivenSettings): void {
  const { engineMetrics, engine, eventPlane, planeEndpoint, dpSize } = values;
  if (engineMetrics === null) return;
  if (engine === 'trtllm' || engine === 'none') {
    const problem = `has no series that tells used blocks for --engine ${engine}`;
    throw refusal('engineMetrics', given, problem, '--engine vllm or sglang with it');
  }
  if (eventPlane !== 'zmq') return;
  const endpoint = loadEndpoint(formatZmqAddress(planeEndpoint), dpSize);
  const address = parseZmqAddress(endpoint);
  if (address !== undefined && (address.transport === 'ipc' || address.port <= MAX_PORT)) return;
  const allowed = 'one that leaves room for a further port or a longer path';
  throw refusal('planeEndpoint', given, `makes worker load's address ${endpoint}`, allowed);
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
  checkTls('natsServer', plain, tlsSetting, given, 'tls');
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
  for (const key of files) checkReadable(key, values[key], given, readFile);
}
