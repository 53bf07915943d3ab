/**
 * (argv, env, file text) → one frozen `WorkerConfig`.
 *
 * Order    flag, environment, configuration file, default.
 * Throws   ConfigError, one line, for the first thing that cannot be used. Reads nothing by itself.
 */
import { ConfigError } from '../errors.ts';
import { formatZmqAddress } from './addresses.ts';
import {
  checkAddresses,
  checkCompat,
  checkEngineMetrics,
  checkNatsAccess,
  checkNatsFiles,
} from './checks.ts';
import { fromFile } from './config-file.ts';
import { checkDiscovery } from './discovery-checks.ts';
import { environmentWarnings, unusedWarnings } from './environment-warnings.ts';
import { checkLmcache } from './lmcache-checks.ts';
import { checkLmcacheStream } from './lmcache-stream-checks.ts';
import { MAX_BATCHING_TIMEOUT_MS } from './relay-settings.ts';
import {
  type SettingKey,
  type SettingValues,
  settingKeys,
  settingName,
  settingOf,
} from './settings-table.ts';
import {
  type Environment,
  fromArguments,
  fromDefaults,
  fromEnvironment,
  type Given,
  type GivenSettings,
} from './sources.ts';
import { checkStores } from './store-checks.ts';
import { checkTcpTls } from './tcp-tls-checks.ts';
import type { WorkerConfig } from './worker-config.ts';

export interface ConfigSources {
  /** Without node, script and command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The text of the configuration file; what it throws becomes a ConfigError. */
  readonly readFile: (path: string) => string;
  /** That many random bytes. */
  readonly random: (byteCount: number) => Uint8Array;
  /** Defaults of the command in place of the table's, as text. */
  readonly defaults?: Readonly<Partial<Record<SettingKey, string>>>;
}

export function loadConfig(sources: ConfigSources): WorkerConfig {
  const { argv, env, readFile, random, defaults = {} } = sources;
  const flags = fromArguments(argv);
  const configFile = flags.get('config');
  const given: GivenSettings = new Map([
    ...fromDefaults(defaults),
    ...(configFile === undefined ? [] : fromFile(configFile, readFile)),
    ...fromEnvironment(env),
    ...flags,
  ]);
  const values = parseAll(given);
  const warnings: string[] = [];
  const addresses = checkAddresses(values, given, warnings);
  checkCompat(values, given);
  checkEngineMetrics(values, given);
  const mooncakeEndpoint = checkStores(values, given, warnings);
  checkNatsAccess(values, given, warnings);
  checkNatsFiles(values, given, readFile);
  checkDiscovery(values, given, readFile);
  checkTcpTls(values, given, readFile, warnings);
  const lmcache = checkLmcache(values, given, warnings);
  const lmcacheStream = checkLmcacheStream(values, given, warnings);
  const batchingTimeoutMs = capBatchingTimeout(values, given, warnings);
  warnings.push(...unusedWarnings(values, given), ...environmentWarnings(env));
  return Object.freeze({
    ...values,
    ...lmcache,
    lmcacheStream,
    lmcacheStreamModels:
      values.lmcacheStreamModels && Object.freeze([...values.lmcacheStreamModels]),
    batchingTimeoutMs,
    engineEndpoint: formatZmqAddress(addresses.engineEndpoint),
    replayEndpoint: addresses.replayEndpoint && formatZmqAddress(addresses.replayEndpoint),
    planeEndpoint: formatZmqAddress(addresses.planeEndpoint),
    mooncakeEndpoint,
    natsServer: Object.freeze([...values.natsServer]),
    http: values.http && Object.freeze(values.http),
    lmcacheCoordinatorListen:
      values.lmcacheCoordinatorListen && Object.freeze(values.lmcacheCoordinatorListen),
    etcdEndpoints: Object.freeze([...values.etcdEndpoints]),
    zmqBroker: values.zmqBroker && Object.freeze([...values.zmqBroker]),
    workerId: workerIdOf(values, random),
    warnings: Object.freeze(warnings),
  });
}

function parseAll(given: GivenSettings): SettingValues {
  const values: Partial<Record<SettingKey, unknown>> = {};
  const hasEngine = parseSetting('engine', given.get('engine')) !== 'none';
  for (const key of settingKeys) {
    const isMissing = settingOf(key).required === 'with-engine' && !given.has(key);
    // Where there are no blocks their size plays no part.
    values[key] = isMissing && !hasEngine ? 0 : parseSetting(key, given.get(key));
  }
  // Sound by the type of the table: each row's kind yields the value of its key.
  return values as SettingValues;
}

function parseSetting(key: SettingKey, given: Given | undefined): unknown {
  const { kind, required, secret, notYet, remedy } = settingOf(key);
  const { allowed } = kind;
  if (given === undefined) {
    if (!required) return null;
    throw new ConfigError({ setting: settingName(key), problem: 'is missing', allowed, remedy });
  }
  const value = kind.parse(given.text);
  if (value !== undefined) return value;
  const problem = notYet?.includes(given.text) ? { problem: 'is not supported yet' } : {};
  const shown = secret ? {} : { value: given.text };
  throw new ConfigError({ setting: given.name, ...shown, ...problem, allowed, remedy });
}

function capBatchingTimeout(
  { batchingTimeoutMs }: SettingValues,
  given: GivenSettings,
  warnings: string[],
): number {
  if (batchingTimeoutMs <= MAX_BATCHING_TIMEOUT_MS) return batchingTimeoutMs;
  const name = given.get('batchingTimeoutMs')?.name;
  warnings.push(
    `${name} ${batchingTimeoutMs} is above the limit: ${MAX_BATCHING_TIMEOUT_MS} is used`,
  );
  return MAX_BATCHING_TIMEOUT_MS;
}

/** Null: the worker that discovery shows. */
function workerIdOf(
  { workerId, discovery }: SettingValues,
  random: (byteCount: number) => Uint8Array,
): bigint | null {
  if (typeof workerId === 'bigint') return workerId;
  return discovery === 'none' ? randomWorkerId(random) : null;
}

/** 53 bits, so that JSON readers keep it exact; 0 is left out, it looks like an unset id. */
function randomWorkerId(random: (byteCount: number) => Uint8Array): bigint {
  let bits = 0n;
  for (const byte of random(7)) bits = (bits << 8n) | BigInt(byte);
  return BigInt.asUintN(53, bits) || 1n;
}
