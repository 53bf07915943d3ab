/** Addresses of ZMQ brokers, in the one text that routers are given too. */
import { formatZmqAddress, MAX_PORT, parseZmqAddress } from './addresses.ts';

/** `xsub=A[;A…],xpub=B[;B…]`, in any order: the XSUB addresses; undefined where it is not that. */
export function parseZmqBrokers(text: string): readonly string[] | undefined {
  const bySide = new Map<string, readonly string[]>();
  for (const part of text.split(',')) {
    const [, side, list] = /^\s*(xsub|xpub)\s*=\s*(\S+)\s*$/.exec(part) ?? [];
    const addresses = list?.split(';').map(connectAddress) ?? [];
    if (side === undefined || bySide.has(side)) return undefined;
    bySide.set(
      side,
      addresses.filter((address) => address !== undefined),
    );
    if (addresses.includes(undefined)) return undefined;
  }
  const xsub = bySide.get('xsub');
  return bySide.has('xpub') && xsub !== undefined ? xsub : undefined;
}

/** Undefined where it cannot be connected to. */
function connectAddress(text: string): string | undefined {
  const address = parseZmqAddress(text);
  if (address === undefined) return undefined;
  if (address.transport === 'tcp') {
    if (address.host === '*' || address.port < 1 || address.port > MAX_PORT) return undefined;
  }
  return formatZmqAddress(address);
}
