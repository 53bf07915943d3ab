/**
 * Address rules: which texts are ZMQ or HTTP addresses, and what becomes of them for a rank.
 *
 * Pure: no name is resolved and no socket opened. zeromq itself takes port 70000 without a word and
 * answers a wildcard in a connect address with a bare EINVAL, so both are settled here.
 */
export type ZmqAddress =
  | { readonly transport: 'tcp'; readonly host: string; readonly port: number }
  | { readonly transport: 'ipc'; readonly path: string };

/** `host` without brackets, as `net.listen` wants it. */
export interface HttpAddress {
  readonly host: string;
  readonly port: number;
}

export const MAX_PORT = 65535;

/** A Unix socket path longer than this does not fit `sockaddr_un`. */
const MAX_IPC_PATH_BYTES = 107;

/** The address, its port unchecked (see `rankPort`); undefined: not one kvrelay can use. */
export function parseZmqAddress(text: string): ZmqAddress | undefined {
  if (text.startsWith('tcp://')) {
    const hostPort = parseHostPort(text.slice('tcp://'.length));
    return hostPort && { transport: 'tcp', ...hostPort };
  }
  if (!text.startsWith('ipc://')) return undefined;
  const path = text.slice('ipc://'.length);
  const bytes = new TextEncoder().encode(path).length;
  // libzmq makes up a path for `*`, which nobody could then connect to.
  if (path === '' || path === '*' || /\p{Cc}/u.test(path)) return undefined;
  return bytes <= MAX_IPC_PATH_BYTES ? { transport: 'ipc', path } : undefined;
}

export function formatZmqAddress(address: ZmqAddress): string {
  if (address.transport === 'ipc') return `ipc://${address.path}`;
  return `tcp://${address.host}:${address.port}`;
}

export function parseHttpAddress(text: string): HttpAddress | undefined {
  const hostPort = parseHostPort(text);
  if (hostPort === undefined || hostPort.host === '*' || hostPort.port > MAX_PORT) return undefined;
  return { host: hostPort.host.replace(/^\[|\]$/g, ''), port: hostPort.port };
}

export function formatHttpAddress({ host, port }: HttpAddress): string {
  return `${bracketedHost(host)}:${port}`;
}

function bracketedHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** `host:port`; an IPv6 host only in brackets, which it keeps. */
function parseHostPort(text: string): { host: string; port: number } | undefined {
  const match = /^(\*|\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,10})$/.exec(text);
  const host = match?.[1];
  if (host === undefined || !isHost(host)) return undefined;
  return { host, port: Number(match?.[2]) };
}

/** True for literal addresses, IPv6 without brackets and without a zone. */
export function isIpAddress(text: string): boolean {
  if (text.includes(':')) return /^[0-9a-fA-F:.]+$/.test(text) && isHost(`[${text}]`);
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) && isHost(text);
}

/** True for names and addresses the URL standard accepts, so 999.1.1.1 and [::1::] are none. */
export function isHost(host: string): boolean {
  return host === '*' || URL.canParse(`http://${host}/`);
}

/** The loopback host of the same family for a wildcard, which cannot be connected to; else null. */
function loopbackFor(host: string): string | null {
  if (host === '*') return '127.0.0.1';
  // The URL parser brings every spelling (`0`, `[0:0::0]`) to one.
  const canonical = new URL(`http://${host}/`).hostname;
  if (canonical === '0.0.0.0') return '127.0.0.1';
  return canonical === '[::]' ? '[::1]' : null;
}

/** The address that reaches what listens on `address`: a wildcard is, seen from here, this host. */
export function connectable(address: ZmqAddress): ZmqAddress {
  const host = address.transport === 'tcp' ? loopbackFor(address.host) : null;
  return address.transport === 'ipc' || host === null ? address : { ...address, host };
}

/** The same for HTTP. */
export function connectableHttp(address: HttpAddress): HttpAddress {
  const host = loopbackFor(bracketedHost(address.host));
  return host === null ? address : { ...address, host: host.replace(/^\[|\]$/g, '') };
}

/** Where the ZMQ plane publishes worker load: behind its last rank, or beside its only one. */
export function loadEndpoint(planeEndpoint: string, dpSize: number): string {
  if (planeEndpoint.startsWith('ipc://')) return `${planeEndpoint}.load`;
  return rankEndpoint(planeEndpoint, dpSize);
}

/** Where the ZMQ plane publishes what stores hold: behind worker load, which may not be there. */
export function objectsEndpoint(planeEndpoint: string, dpSize: number): string {
  if (planeEndpoint.startsWith('ipc://')) return `${planeEndpoint}.objects`;
  return rankEndpoint(planeEndpoint, dpSize + 1);
}

/**
 * The endpoint of the rank `offset` behind the first: engines add it to their port. Port 0 stays, it
 * asks for a free one. An ipc endpoint has no port and stands for one rank only.
 */
export function rankEndpoint(endpoint: string, offset: number): string {
  const address = parseZmqAddress(endpoint);
  if (address === undefined || address.transport === 'ipc' || address.port === 0) return endpoint;
  return formatZmqAddress({ ...address, port: address.port + offset });
}
