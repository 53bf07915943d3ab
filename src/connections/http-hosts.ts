/**
 * HostCheck: refuses requests whose `Host` names none of a loopback server's own names. A web site
 * can point its DNS name at 127.0.0.1 (DNS rebinding) and would read the status through the
 * operator's browser, but the browser still sends that name.
 */

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** A host may be given as a name, or as an address, IPv6 with or without brackets. */
export function unbracketed(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

export function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address);
}

/** The names a request may use; null where any may be used. */
export function allowedHosts(boundAddress: string, givenHost: string): ReadonlySet<string> | null {
  if (!isLoopback(boundAddress)) return null;
  const names = [...LOOPBACK_NAMES, bracketed(boundAddress), bracketed(givenHost)];
  return new Set(names.map((name) => name.toLowerCase()));
}

/** The port is not looked at: a forwarded one is as good. HTTP/1.0 clients may send no header. */
export function isAllowedHost(header: string | undefined, allowed: ReadonlySet<string>): boolean {
  return header === undefined || allowed.has(header.replace(/:\d*$/, '').toLowerCase());
}
