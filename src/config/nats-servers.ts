/** The list of NATS servers: a pool of one cluster, tried in turn. */
import { isHost, MAX_PORT } from './addresses.ts';

const SERVER_PATTERN =
  /^(?:nats|tls):\/\/(?<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?<port>\d{1,5}))?\/?$/;

/** One URL a server, without a trailing slash; undefined where one is not allowed. */
export function parseNatsServers(text: string): readonly string[] | undefined {
  const servers = text.split(',').map((server) => server.trim().replace(/\/$/, ''));
  return servers.every(isNatsServer) ? servers : undefined;
}

function isNatsServer(server: string): boolean {
  const { host, port } = SERVER_PATTERN.exec(server)?.groups ?? {};
  if (host === undefined || !isHost(host)) return false;
  return port === undefined || (Number(port) >= 1 && Number(port) <= MAX_PORT);
}
