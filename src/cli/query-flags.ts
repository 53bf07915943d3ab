/** The flags of `kvrelay query`, and which of them go with which question. */
import { connectableHttp, type HttpAddress } from '../config/addresses.ts';
import { choice, integer, nonEmptyText, text, toggle, U32_MAX, u64 } from '../config/kinds.ts';
import { processSettings } from '../config/process-settings.ts';
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
import { tokenList } from './token-list.ts';

const QUESTIONS = ['status', 'events', 'dump', 'match', 'objects'] as const;
export type Question = (typeof QUESTIONS)[number];

const MAX_TIMEOUT_SECONDS = 3600;

interface GivenFlags extends LogFlags {
  readonly http: HttpAddress | null;
  readonly json: boolean;
  readonly rank: number | null;
  readonly start: bigint | null;
  readonly end: bigint | null;
  readonly tokens: readonly number[] | null;
  readonly loraName: string | null;
  readonly request: string | null;
  readonly source: string | null;
  readonly backend: string | null;
  readonly tenant: string | null;
  readonly prefix: string | null;
  readonly timeoutSeconds: number;
}

export interface QueryFlags extends Omit<GivenFlags, 'http'> {
  readonly question: Question;
  /** Where the relay is reached from here. */
  readonly http: HttpAddress;
}

/** Flags that mean something to some of the questions only. */
const ONLY_WITH: Readonly<Partial<Record<keyof GivenFlags, readonly Question[]>>> = {
  rank: ['events', 'dump'],
  start: ['events'],
  end: ['events'],
  tokens: ['match'],
  loraName: ['match'],
  request: ['match'],
  source: ['objects'],
  backend: ['objects'],
  tenant: ['objects'],
  prefix: ['objects'],
};

const flags: CommandFlags<GivenFlags> = {
  command: 'query',
  usage: `Usage: kvrelay query status|events|dump|match|objects [flags]

Asks a running relay over HTTP, and changes nothing there.

  status  what the relay is doing, and what is wrong with it
  events  router events of a rank by their ids, as far as the relay keeps them
  dump    every block in the local index, a line each
  match   how many blocks of a prompt are held, by rank and tier
  objects every object that a store beside the engine holds, a line each

Exit codes: 0 answered, 1 no answer or not the whole of it, 2 bad usage or configuration.
`,
  argument: {
    flag: null,
    environment: null,
    kind: { ...choice(...QUESTIONS), placeholder: 'QUESTION' },
    fallback: null,
    required: true,
    help: 'What to ask',
    remedy: 'Start kvrelay query --help to see what they are',
  },
  rows: {
    http: {
      ...processSettings.http,
      help: 'Address at which the relay serves HTTP',
      remedy: 'Give the address that the relay has in --http',
    },
    json: {
      flag: '--json',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help: 'The JSON of the relay: one line, of dump and objects one a line; 64-bit numbers are decimal strings',
      remedy: 'Give --json alone',
    },
    rank: {
      flag: '--rank',
      environment: null,
      kind: integer(0, U32_MAX, 'RANK'),
      fallback: null,
      fallbackNote: 'for events the only one there is, for dump every one',
      help: 'events, dump: of this data-parallel rank',
      remedy: 'Give a rank that kvrelay query status lists',
    },
    start: eventId('--start', 'first id', 'the first there was'),
    end: eventId('--end', 'last id', 'the newest'),
    tokens: {
      flag: '--tokens',
      environment: null,
      kind: tokenList,
      fallback: null,
      help: 'match: the prompt. Other users of this host can see it here: --request hides it',
      remedy: 'Give the token ids of the prompt, or a file with --request',
    },
    loraName: {
      flag: '--lora-name',
      environment: null,
      kind: nonEmptyText('NAME'),
      fallback: null,
      help: 'match: the adapter of the prompt, beside --tokens',
      remedy: 'Give the name of the adapter, or leave it out',
    },
    request: {
      flag: '--request',
      environment: null,
      kind: nonEmptyText('FILE|-'),
      fallback: null,
      help: 'match: file with the JSON {"tokens":[…],"lora_name":…,"cache_salt":…}; - is stdin',
      remedy: 'Give the path of a JSON file',
    },
    source: ofObjects('--source', 'NAME', 'of this source, such as mooncake'),
    backend: ofObjects('--backend', 'ID', 'of this backend of the store'),
    tenant: ofObjects('--tenant', 'ID', 'of this tenant of the store'),
    prefix: ofObjects('--prefix', 'TEXT', 'whose keys begin with this'),
    timeoutSeconds: {
      flag: '--timeout-seconds',
      environment: null,
      kind: decimal(0.1, MAX_TIMEOUT_SECONDS, 'S'),
      fallback: '10',
      help: 'Longest wait for the answer, and for each further part of it',
      remedy: 'Give a time in seconds',
    },
    ...logFlags,
  },
};

export function loadQueryFlags(argv: readonly string[], env: Environment): QueryFlags {
  const { argument, http, ...given } = loadFlags(flags, argv, env);
  const question = argument as Question;
  for (const [key, questions] of Object.entries(ONLY_WITH)) {
    const name = key as keyof typeof ONLY_WITH;
    if (given[name as keyof typeof given] === null || questions.includes(question)) continue;
    throw refused(name, `means nothing to ${question}`, questions.join(' or '));
  }
  if (question === 'match') checkPrompt(given);
  if (given.start !== null && given.end !== null && given.start > given.end) {
    throw refused('end', `is below --start ${given.start}`, 'the same or a larger id');
  }
  return { ...given, question, http: reachable(http) };
}

export function help(): string {
  return flagsHelp(flags);
}

function checkPrompt({
  tokens,
  loraName,
  request,
}: Pick<GivenFlags, 'tokens' | 'loraName' | 'request'>): void {
  if (tokens === null && request === null)
    throw refused('tokens', 'is missing', 'it or --request FILE');
  if (request === null) return;
  if (tokens !== null) throw refused('tokens', 'contradicts --request', 'one of the two');
  if (loraName !== null)
    throw refused('loraName', 'contradicts --request', '"lora_name" in the file');
}

/** A wildcard is, seen from here, this host. */
function reachable(http: HttpAddress | null): HttpAddress {
  if (http === null) throw refused('http', "is 'off'", 'HOST:PORT of a running relay');
  if (http.port !== 0) return connectableHttp(http);
  throw refused('http', 'has port 0', 'the port that the relay logged at its start');
}

function refused(key: keyof GivenFlags, problem: string, allowed: string): ConfigError {
  const { flag, remedy } = flags.rows[key];
  return new ConfigError({ setting: flag ?? key, problem, allowed, remedy });
}

function ofObjects(
  flag: `--${string}`,
  placeholder: string,
  which: string,
): CommandFlags<GivenFlags>['rows']['source'] {
  return {
    flag,
    environment: null,
    kind: { ...text, placeholder },
    fallback: null,
    fallbackNote: 'all',
    help: `objects: those ${which}`,
    remedy: 'Give what the lines of kvrelay query objects show',
  };
}

function eventId(
  flag: `--${string}`,
  which: string,
  otherwise: string,
): CommandFlags<GivenFlags>['rows']['start'] {
  return {
    flag,
    environment: null,
    kind: u64,
    fallback: null,
    fallbackNote: otherwise,
    help: `events: ${which} of the range`,
    remedy: 'Give an event id, or leave it out',
  };
}
