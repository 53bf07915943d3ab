/** Addresses that are connected to: what is used in place of one that only can be bound, and which are refused. */
import { connectable, formatZmqAddress, MAX_PORT, type ZmqAddress } from './addresses.ts';
import { nameOf, refusal } from './refusal.ts';
import type { SettingKey } from './settings-table.ts';
import type { GivenSettings } from './sources.ts';

export function connectTo(address: ZmqAddress, name: string, warnings: string[]): ZmqAddress {
  const rewritten = connectable(address);
  if (rewritten === address) return address;
  warnings.push(
    `${name} ${formatZmqAddress(address)} cannot be connected to: ` +
      `${formatZmqAddress(rewritten)} is used`,
  );
  return rewritten;
}

/** Of a source beside the engine, as its socket takes it. */
export function sourceEndpoint(
  key: SettingKey,
  address: ZmqAddress,
  given: GivenSettings,
  warnings: string[],
): string {
  if (address.transport === 'tcp' && (address.port < 1 || address.port > MAX_PORT)) {
    throw refusal(key, given, 'has no port that can be connected to', `ports 1 to ${MAX_PORT}`);
  }
  return formatZmqAddress(connectTo(address, nameOf(key, given), warnings));
}
