/**
 * Kinds: how the text of a setting becomes its value. Text is all there is, whatever the source: the
 * same rules then hold for flags, environment and file.
 */
import {
  type HttpAddress,
  isIpAddress,
  parseHttpAddress,
  parseZmqAddress,
  type ZmqAddress,
} from './addresses.ts';
import { parseNatsServers } from './nats-servers.ts';

export interface Kind<Value> {
  /** Stands for the value in the help text; null: the flag stands alone. */
  readonly placeholder: string | null;
  /** Continues "allowed: …". */
  readonly allowed: string;
  /** A configuration file may give it without quotes. */
  readonly isNumber?: true;
  /** The value, or undefined where the text is not allowed. */
  readonly parse: (text: string) => Value | undefined;
}

export const U32_MAX = 0xffff_ffff;
const U64_MAX = 0xffff_ffff_ffff_ffffn;
const MAX_TEXT_CHARACTERS = 1024;

/** Decimal digits only: a sign, an exponent or a hex prefix is a slip. */
export function integer(min: number, max: number, placeholder = 'N'): Kind<number> {
  return {
    placeholder,
    allowed: `an integer from ${min} to ${max}`,
    isNumber: true,
    parse: (text) => {
      if (!/^\d{1,16}$/.test(text)) return undefined;
      const value = Number(text);
      return value >= min && value <= max ? value : undefined;
    },
  };
}

export const u64: Kind<bigint> = {
  placeholder: 'ID',
  allowed: 'an integer from 0 to 18446744073709551615, decimal or 0x hex',
  isNumber: true,
  parse: (text) => {
    if (!/^(\d{1,20}|0[xX][0-9a-fA-F]{1,16})$/.test(text)) return undefined;
    const value = BigInt(text);
    return value <= U64_MAX ? value : undefined;
  },
};

export function choice<const Name extends string>(...names: readonly Name[]): Kind<Name> {
  return {
    placeholder: names.join('|'),
    allowed: listed(names),
    parse: (text) => names.find((name) => name === text),
  };
}

const ON_TEXTS = ['on', 'true', '1', 'yes'];
const OFF_TEXTS = ['off', 'false', '0', 'no'];

export function isOffText(text: string): boolean {
  return OFF_TEXTS.includes(text.toLowerCase());
}

export const toggle: Kind<boolean> = {
  placeholder: null,
  allowed: 'on or off (also true/false, 1/0, yes/no)',
  parse: (text) => {
    if (ON_TEXTS.includes(text.toLowerCase())) return true;
    return isOffText(text) ? false : undefined;
  },
};

/** Any text, the empty one too; what a terminal would act on is a slip. */
export const text: Kind<string> = {
  placeholder: 'TEXT',
  allowed: `text of at most ${MAX_TEXT_CHARACTERS} characters without control characters`,
  parse: (given) =>
    given.length <= MAX_TEXT_CHARACTERS && !/\p{Cc}/u.test(given) ? given : undefined,
};

export function nonEmptyText(placeholder: string): Kind<string> {
  return {
    placeholder,
    allowed: `text of 1 to ${MAX_TEXT_CHARACTERS} characters without control characters`,
    parse: (given) => (given === '' ? undefined : text.parse(given)),
  };
}

/** One part of `namespace.component.endpoint`; whatever it holds is percent-encoded in subjects. */
export const pathPart: Kind<string> = {
  placeholder: 'NAME',
  allowed: 'a name alone, not empty, without "://" and control characters',
  parse: (given) => (given === '' || given.includes('://') ? undefined : text.parse(given)),
};

export const zmqAddress: Kind<ZmqAddress> = {
  placeholder: 'ADDRESS',
  allowed: 'tcp://HOST:PORT (IPv6 in brackets) or ipc://PATH',
  parse: parseZmqAddress,
};

export const ipAddress: Kind<string | null> = {
  placeholder: 'IP',
  allowed: 'an IPv4 or IPv6 address that others can reach',
  parse: (given) => {
    const address = given.replace(/^\[(.*)\]$/, '$1');
    // Nobody can connect to a wildcard.
    if (!isIpAddress(address) || /^[0.]+$|^[0:]+$/.test(address)) return undefined;
    return address;
  },
};

export const httpAddress: Kind<HttpAddress | null> = {
  placeholder: 'HOST:PORT|off',
  allowed: 'HOST:PORT (IPv6 in brackets, port 0 to 65535) or off',
  parse: (given) => (given === 'off' ? null : parseHttpAddress(given)),
};

export const natsServers: Kind<readonly string[]> = {
  placeholder: 'URL[,URL…]',
  allowed: 'nats://HOST[:PORT] or tls://HOST[:PORT] without a user name, comma separated',
  parse: parseNatsServers,
};

/** `a`, `a or b`, `a, b or c`. */
export function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
