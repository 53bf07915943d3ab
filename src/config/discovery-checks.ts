/** Checks of discovery and of what it changes elsewhere: worker id, bind address, brokers. */
import { ConfigError } from '../errors.ts';
import { channelKey, fileNameOf, MAX_FILE_NAME_BYTES } from '../protocol/discovery-keys.ts';
import { KV_EVENTS_TOPIC } from '../protocol/envelope.ts';
import { KV_METRICS_TOPIC } from '../protocol/load-event.ts';
import type { ZmqAddress } from './addresses.ts';
import { checkPair, checkReadable, checkTls, nameOf, refusal } from './refusal.ts';
import type { SettingKey, SettingValues } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

const ETCD_TLS_FILES = ['etcdAuthCa', 'etcdAuthClientCert', 'etcdAuthClientKey'] as const;

export function checkDiscovery(
  values: SettingValues,
  given: GivenSettings,
  readFile: (path: string) => string,
): void {
  if (values.workerId === 'auto' && values.discovery === 'none') {
    const allowed = 'an id, or --discovery file or etcd beside it';
    throw refusal('workerId', given, 'needs a discovery to look in', allowed);
  }
  if (values.discovery === 'file') checkFileNames(values, given);
  if (values.discovery === 'etcd') checkEtcd(values, given, readFile);
  if (values.eventPlane === 'zmq' && values.zmqBrokerEnabled && values.zmqBroker === null) {
    throw refusal('zmqBrokerEnabled', given, 'comes without the address of a broker', 'off');
  }
}

/** Names are part of file names, which no file system takes at any length. */
function checkFileNames(values: SettingValues, given: GivenSettings): void {
  const topic = values.engineMetrics === null ? KV_EVENTS_TOPIC : KV_METRICS_TOPIC;
  const bytes = fileNameOf(channelKey(values, topic, Number.MAX_SAFE_INTEGER)).length;
  if (bytes <= MAX_FILE_NAME_BYTES) return;
  const names = ['namespace', 'component', 'endpoint'] as const;
  const [longest] = [...names].sort(
    (a, b) => fileNameOf(values[b]).length - fileNameOf(values[a]).length,
  );
  const problem = `makes a file name of ${bytes} bytes in the file registry`;
  throw refusal(longest ?? 'namespace', given, problem, `${MAX_FILE_NAME_BYTES} bytes`);
}

function checkEtcd(
  values: SettingValues,
  given: GivenSettings,
  readFile: (path: string) => string,
): void {
  checkPair('etcdAuthUsername', 'etcdAuthPassword', given);
  checkPair('etcdAuthClientCert', 'etcdAuthClientKey', given);
  const plain = values.etcdEndpoints.find((server) => !server.startsWith('https://'));
  const tlsSetting: SettingKey | undefined = ETCD_TLS_FILES.find((key) => values[key] !== null);
  checkTls('etcdEndpoints', plain, tlsSetting, given, 'https');
  if (values.etcdAuthClientCert !== null && values.etcdAuthCa === null) {
    throw new ConfigError({
      setting: nameOf('etcdAuthCa', given),
      problem: `is missing beside ${nameOf('etcdAuthClientCert', given)}`,
      allowed: 'the authority of the servers with it',
      remedy: 'Set it, or unset the client certificate',
    });
  }
  for (const key of ETCD_TLS_FILES) checkReadable(key, values[key], given, readFile);
}

/** Where the ZMQ plane binds: told the address under which it is reached, loopback would be a slip. */
export function planeBindAddress(values: SettingValues): ZmqAddress {
  const { planeEndpoint, discovery, eventPlaneHost } = values;
  if (discovery === 'none' || eventPlaneHost === null || planeEndpoint.transport === 'ipc') {
    return planeEndpoint;
  }
  const isLoopback = /^(127\.|localhost$|\[::1\]$)/.test(planeEndpoint.host);
  if (!isLoopback) return planeEndpoint;
  return { ...planeEndpoint, host: eventPlaneHost.includes(':') ? '[::]' : '*' };
}
