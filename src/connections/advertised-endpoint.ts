/** Which address of this host routers are told for a socket that is bound here. */
import { networkInterfaces } from 'node:os';

/**
 * `bound` as others reach it: with `host` in place of its own where one is given, a wildcard as the first
 * address of this host that is not loopback, where there is one. ipc endpoints stay.
 */
export function advertisedEndpoint(bound: string, host: string | null): string {
  const match = /^tcp:\/\/(.*):(\d+)$/.exec(bound);
  if (match === null) return bound;
  const [, boundHost = '', port = ''] = match;
  const reachable = host ?? (isWildcard(boundHost) ? ownAddress() : boundHost);
  return `tcp://${reachable.includes(':') && !reachable.startsWith('[') ? `[${reachable}]` : reachable}:${port}`;
}

/** Only routers of this host reach it. */
export function isLoopbackEndpoint(endpoint: string): boolean {
  return /^(ipc:|tcp:\/\/(127\.|localhost:|\[::1\]|\[::ffff:127\.))/i.test(endpoint);
}

function isWildcard(host: string): boolean {
  return host === '*' || host === '0.0.0.0' || host === '[::]';
}

function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const outside = addresses.filter(({ internal, scopeid }) => !internal && !scopeid);
  const best = outside.find(({ family }) => family === 'IPv4') ?? outside[0];
  return best?.address ?? '127.0.0.1';
}
