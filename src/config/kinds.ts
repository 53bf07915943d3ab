/**
 * Kinds: how the text of a setting becomes its value. Text is all there is, whatever the source: the
 * same rules then hold for flags, environment and file.
 */
import {
  type HttpAddress,
  isHost,
  isIpAddress,
  parseHttpAddress,
  parseZmqAddress,
  type ZmqAddress,
} from './addresses.ts';
import { parseEtcdServers, parseNatsServers } from './server-lists.ts';
import { parseZmqBrokers } from './zmq-brokers.ts';

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

export const workerIdKind: Kind<bigint | 'auto'> = {
  ...u64,
  allowed: `${u64.allowed}, or auto`,
  parse: (text) => (text === 'auto' ? text : u64.parse(text)),
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

/** Without a path it is /metrics, where every engine has it. */
export const httpUrl: Kind<string> = {
  placeholder: 'URL',
  allowed: 'http://HOST[:PORT][/PATH] or https://…, without a user name, query or fragment',
  parse: (given) => {
    if (!/^https?:\/\/[^\s@?#\\]+$/.test(given) || !URL.canParse(given)) return undefined;
    const url = new URL(given);
    if (url.pathname === '/') url.pathname = '/metrics';
    return given.length <= MAX_TEXT_CHARACTERS ? url.href : undefined;
  },
};

/** Without a path; the scheme may be left out. */
export const httpBase: Kind<string> = {
  placeholder: 'URL',
  allowed: '[http://]HOST:PORT or https://HOST[:PORT], without a user name, path or query',
  parse: (given) => {
    const text = /^https?:\/\//.test(given) ? given : `http://${given}`;
    if (given.length > MAX_TEXT_CHARACTERS || !/^https?:\/\/[^\s@?#\\/]+\/?$/.test(text))
      return undefined;
    const url = URL.canParse(text) ? new URL(text) : null;
    return url === null || url.hostname === '' ? undefined : url.origin;
  },
};

/** Each at most once. */
export function nameList(max: number): Kind<readonly string[]> {
  return {
    placeholder: 'NAME[,NAME…]',
    allowed: `1 to ${max} names without control characters, comma separated, each once`,
    parse: (given) => {
      const names = given.split(',').map((name) => name.trim());
      const isList = names.length <= max && new Set(names).size === names.length;
      const isName = (name: string): boolean => name !== '' && text.parse(name) !== undefined;
      return isList && names.every(isName) ? names : undefined;
    },
  };
}

export const natsServers: Kind<readonly string[]> = {
  placeholder: 'URL[,URL…]',
  allowed: 'nats://HOST[:PORT] or tls://HOST[:PORT] without a user name, comma separated',
  parse: parseNatsServers,
};

export const etcdServers: Kind<readonly string[]> = {
  placeholder: 'URL[,URL…]',
  allowed:
    'http://HOST[:PORT] or https://HOST[:PORT] without a user name, comma separated, of one kind',
  parse: parseEtcdServers,
};

export const zmqBrokers: Kind<readonly string[]> = {
  placeholder: 'XSUB,XPUB',
  allowed: 'xsub=tcp://HOST:PORT[;…],xpub=tcp://HOST:PORT[;…]',
  parse: parseZmqBrokers,
};

/** An IP address or a name; IPv6 with or without brackets. */
export const literalHost: Kind<string> = {
  placeholder: 'HOST',
  allowed: 'an address of this host, without a port',
  parse: (given) => {
    if (/^[A-Za-z0-9._-]+$/.test(given)) return isHost(given) ? given : undefined;
    const ipv6 = given.replace(/^\[(.*)\]$/, '$1');
    return /^[0-9a-fA-F:.]+$/.test(ipv6) && isHost(`[${ipv6}]`) ? ipv6 : undefined;
  },
};

/** `a`, `a or b`, `a, b or c`. */
export function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
