/** Checks of TLS between Dynamo's processes: what belongs together, and files that can be read. */
import { ConfigError } from '../errors.ts';
import { checkPair, checkReadable, nameOf } from './refusal.ts';
import type { SettingValues } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

const FILES = [
  'tcpTlsCertPath',
  'tcpTlsKeyPath',
  'tcpTlsClientCaCertPath',
  'tcpTlsCaCertPath',
  'tcpTlsClientCertPath',
  'tcpTlsClientKeyPath',
] as const;

/** Only where routers can ask: else these variables are there for other processes. */
export function checkTcpTls(
  values: SettingValues,
  given: GivenSettings,
  readFile: (path: string) => string,
  warnings: string[],
): void {
  if (values.requestPlane === 'none' || !values.indexer) return;
  checkPair('tcpTlsCertPath', 'tcpTlsKeyPath', given);
  checkPair('tcpTlsClientCertPath', 'tcpTlsClientKeyPath', given);
  if (values.tcpTlsClientCaCertPath !== null && values.tcpTlsCertPath === null) {
    throw missing('tcpTlsCertPath', 'tcpTlsClientCaCertPath', given);
  }
  const isVerified = values.tcpTlsCaCertPath !== null || values.tcpTlsInsecure;
  if (values.tcpTlsClientCertPath !== null && !isVerified) {
    throw missing('tcpTlsCaCertPath', 'tcpTlsClientCertPath', given);
  }
  for (const key of FILES) checkReadable(key, values[key], given, readFile);
  if (values.tcpTlsCertPath === null || isVerified) return;
  const [listener, answers] = [nameOf('tcpTlsCertPath', given), nameOf('tcpTlsCaCertPath', given)];
  warnings.push(`${listener} is set without ${answers}: answers go to routers without TLS`);
}

function missing(
  key: 'tcpTlsCertPath' | 'tcpTlsCaCertPath',
  beside: 'tcpTlsClientCaCertPath' | 'tcpTlsClientCertPath',
  given: GivenSettings,
): ConfigError {
  return new ConfigError({
    setting: nameOf(key, given),
    problem: `is missing beside ${nameOf(beside, given)}`,
    allowed: 'both or neither',
    remedy: 'Set the missing one, or unset the other',
  });
}
