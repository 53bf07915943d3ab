/** Lists of servers: each a pool of one cluster, tried in turn. */
import { isHost, MAX_PORT } from './addresses.ts';

const HOST_AND_PORT = String.raw`(?<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?<port>\d{1,5}))?\/?$`;
const NATS_SERVER = new RegExp(String.raw`^(?:nats|tls):\/\/${HOST_AND_PORT}`);
const ETCD_SERVER = new RegExp(String.raw`^https?:\/\/${HOST_AND_PORT}`);

/** One URL a server, without a trailing slash; undefined where one is not allowed. */
export function parseNatsServers(text: string): readonly string[] | undefined {
  return parseServers(text, NATS_SERVER);
}

/** The same; all of them with TLS, or none. */
export function parseEtcdServers(text: string): readonly string[] | undefined {
  const servers = parseServers(text, ETCD_SERVER);
  const withTls = servers?.filter((server) => server.startsWith('https://')).length ?? 0;
  return withTls === 0 || withTls === servers?.length ? servers : undefined;
}

function parseServers(text: string, pattern: RegExp): readonly string[] | undefined {
  const servers = text.split(',').map((server) => server.trim().replace(/\/$/, ''));
  return servers.every((server) => isServer(server, pattern)) ? servers : undefined;
}

function isServer(server: string, pattern: RegExp): boolean {
  const { host, port } = pattern.exec(server)?.groups ?? {};
  if (host === undefined || !isHost(host)) return false;
  return port === undefined || (Number(port) >= 1 && Number(port) <= MAX_PORT);
}
