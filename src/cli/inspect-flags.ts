/** The flags of `kvrelay inspect`, and what its argument stands for. */
import { MAX_PORT, parseZmqAddress, type ZmqAddress } from '../config/addresses.ts';
import { integer, nonEmptyText, text, toggle } from '../config/kinds.ts';
import { type NatsSettings, natsSettings } from '../config/nats-settings.ts';
import { parseNatsServers } from '../config/server-lists.ts';
import type { Environment } from '../config/sources.ts';
import { ConfigError } from '../errors.ts';
import {
  type CommandFlags,
  decimal,
  flagsHelp,
  type LogFlags,
  loadFlags,
  logFlags,
} from './recording-flags.ts';

const MAX_SECONDS = 1_000_000;
const ALL_SUBJECTS = 'namespace.>';

export type Target =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'zmq'; readonly address: ZmqAddress }
  | { readonly kind: 'nats'; readonly servers: readonly string[]; readonly subject: string };

type NatsFlags = Omit<
  NatsSettings,
  'natsServer' | 'natsStartupConnectTimeoutSeconds' | 'natsResumeDelayMs'
>;

export interface InspectFlags extends LogFlags, NatsFlags {
  readonly json: boolean;
  readonly follow: boolean;
  readonly seconds: number | null;
  readonly messages: number | null;
  readonly topic: string;
}

const flags: CommandFlags<InspectFlags> = {
  command: 'inspect',
  usage: `Usage: kvrelay inspect FILE|ENDPOINT|nats://HOST[:PORT][/SUBJECT] [flags]

Prints decoded messages, one line an event: of a recording or trace, of an engine's event socket or a
ZMQ plane (tcp://HOST:PORT, ipc://PATH; told apart by their frames), or of NATS. Token ids are
counted and not shown. A live source ends after 10 seconds where no flag says otherwise.
Exit codes: 0 clean, 1 failed at run time, 2 bad usage or configuration.
`,
  argument: {
    flag: null,
    environment: null,
    kind: nonEmptyText('FILE|ENDPOINT|nats://…'),
    fallback: null,
    required: true,
    help: 'What to print the messages of',
    remedy: 'Name a recording, tcp://HOST:PORT or nats://HOST:PORT/SUBJECT',
  },
  rows: {
    json: {
      flag: '--json',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help: 'One JSON object a line; numbers of 64 bits are decimal strings',
      remedy: 'Give --json alone',
    },
    follow: {
      flag: '--follow',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help: 'Keep going: a live source has no time limit, a recording is waited for at its end',
      remedy: 'Give --follow alone',
    },
    seconds: {
      flag: '--seconds',
      environment: null,
      kind: decimal(0, MAX_SECONDS, 'S'),
      fallback: null,
      fallbackNote: '10 for a live source without --follow or --messages',
      help: 'End after this time',
      remedy: 'Give a time in seconds, or leave it out',
    },
    messages: {
      flag: '--messages',
      environment: null,
      kind: integer(1, Number.MAX_SAFE_INTEGER),
      fallback: null,
      help: 'End after this many messages',
      remedy: 'Give a number of messages, or leave it out',
    },
    topic: {
      flag: '--topic',
      environment: null,
      kind: text,
      fallback: '',
      help: 'ZMQ: subscribe to topics with this prefix; empty: to all',
      remedy: 'Give the start of the topic',
    },
    natsAuthUsername: natsSettings.natsAuthUsername,
    natsAuthPassword: natsSettings.natsAuthPassword,
    natsAuthToken: natsSettings.natsAuthToken,
    natsAuthNkey: natsSettings.natsAuthNkey,
    natsAuthCredentialsFile: natsSettings.natsAuthCredentialsFile,
    natsTlsCaCertPath: natsSettings.natsTlsCaCertPath,
    natsTlsClientCertPath: natsSettings.natsTlsClientCertPath,
    natsTlsClientKeyPath: natsSettings.natsTlsClientKeyPath,
    natsTlsInsecure: natsSettings.natsTlsInsecure,
    ...logFlags,
  },
};

export function loadInspectFlags(
  argv: readonly string[],
  env: Environment,
): InspectFlags & { readonly target: Target } {
  const given = loadFlags(flags, argv, env);
  return { ...given, target: targetOf(given.argument) };
}

export function help(): string {
  return flagsHelp(flags);
}

function targetOf(argument: string): Target {
  if (/^(nats|tls):\/\//.test(argument)) return natsTarget(argument);
  if (!/^[a-z]+:\/\//.test(argument)) return { kind: 'file', path: argument };
  const address = parseZmqAddress(argument);
  const hasPort = address?.transport === 'ipc' || isPort(address?.port ?? 0);
  if (address === undefined || !hasPort) throw refusal(argument);
  return { kind: 'zmq', address };
}

/** The servers, comma separated, and behind the last one's slash the subject. */
function natsTarget(argument: string): Target {
  const slash = argument.indexOf('/', argument.lastIndexOf('://') + 3);
  const servers = parseNatsServers(slash < 0 ? argument : argument.slice(0, slash));
  const subject = (slash < 0 ? '' : argument.slice(slash + 1)) || ALL_SUBJECTS;
  if (servers === undefined || !isSubject(subject)) throw refusal(argument);
  return { kind: 'nats', servers, subject };
}

/** Words between dots; `>` last alone. The client would send anything else as it is. */
function isSubject(subject: string): boolean {
  return /^([^\s.>*]+|\*)(\.([^\s.>*]+|\*))*(\.>)?$|^>$/.test(subject);
}

function isPort(port: number): boolean {
  return port >= 1 && port <= MAX_PORT;
}

function refusal(value: string): ConfigError {
  return new ConfigError({
    setting: 'argument',
    value,
    allowed: 'FILE, tcp://HOST:PORT, ipc://PATH or nats://HOST[:PORT][/SUBJECT]',
    remedy: 'Correct the address; user and password of NATS come from NATS_AUTH_USERNAME and so on',
  });
}
