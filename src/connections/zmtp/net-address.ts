/** Where a ZMQ endpoint is for sockets of Node: to connect to, or to listen at. */
import type { ListenOptions, NetConnectOpts } from 'node:net';
import { networkInterfaces } from 'node:os';

const MAX_PORT = 65_535;
const TCP = /^tcp:\/\/(.*):([0-9]{1,5})$/;

/** Null for what only libzmq knows. `family` is of names, which stand for IPv4 addresses; a path behind `@` is abstract. */
export function connectAddress(endpoint: string): NetConnectOpts | null {
  const tcp = /^tcp:\/\/(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/.exec(endpoint);
  if (tcp !== null) {
    const [, ipv6, host = ipv6 ?? '', digits] = tcp;
    const port = Number(digits);
    return port < 1 || port > MAX_PORT ? null : { host, port, family: 4 };
  }
  const path = /^ipc:\/\/(.+)$/.exec(endpoint)?.[1];
  return path === undefined || path === '*' ? null : { path: socketPath(path) };
}

/** The host may be `*`, and the name of a network interface, which stands for its first IPv4 address. */
export function listenAddress(endpoint: string): ListenOptions {
  const tcp = TCP.exec(endpoint);
  if (tcp === null) return { path: socketPath(endpoint.slice('ipc://'.length)) };
  const [, named = '', digits] = tcp;
  const host =
    named === '*' ? '0.0.0.0' : (addressOfInterface(named) ?? named.replace(/^\[|\]$/g, ''));
  return { host, port: Number(digits) };
}

/** With the address of a network interface in place of its name. */
export function numericEndpoint(endpoint: string): string {
  const tcp = TCP.exec(endpoint);
  const address = tcp && addressOfInterface(tcp[1] ?? '');
  return address ? `tcp://${address}:${tcp?.[2]}` : endpoint;
}

function addressOfInterface(name: string): string | undefined {
  return networkInterfaces()[name]?.find(({ family }) => family === 'IPv4')?.address;
}

function socketPath(path: string): string {
  return path.startsWith('@') ? `\0${path.slice(1)}` : path;
}
