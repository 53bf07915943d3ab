/** The flags of `kvrelay record`: those of the engine's socket as `run` has them, and its own. */
import type { ZmqAddress } from '../config/addresses.ts';
import { engineSettings } from '../config/engine-settings.ts';
import { integer, nonEmptyText, text, toggle } from '../config/kinds.ts';
import type { Environment } from '../config/sources.ts';
import {
  type CommandFlags,
  decimal,
  flagsHelp,
  type LogFlags,
  loadFlags,
  logFlags,
} from './recording-flags.ts';

const MAX_SECONDS = 1_000_000_000;
/** The header of a recording has room for no longer name. */
const MAX_ENGINE_CHARACTERS = 200;

export interface RecordFlags extends LogFlags {
  readonly out: string;
  readonly force: boolean;
  readonly redact: boolean;
  readonly batches: number | null;
  readonly seconds: number | null;
  readonly engineEndpoint: ZmqAddress;
  readonly engineBind: boolean;
  readonly engineTopic: string;
  readonly engineReceiveHwm: number;
  readonly engineMaxMessageBytes: number;
  readonly engine: string;
  readonly blockSize: number | null;
  readonly description: string;
}

const flags: CommandFlags<RecordFlags> = {
  command: 'record',
  usage: `Usage: kvrelay record --out FILE [flags]

Saves an engine's raw messages with their arrival times, until SIGTERM or SIGINT or one of the limits
below. The file holds token ids, so only its owner may read it; --redact keeps hashes only.
Exit codes: 0 clean, 1 failed at run time, 2 bad usage or configuration.

A flag counts before its environment variable, that before the default.
`,
  argument: null,
  rows: {
    out: {
      flag: '--out',
      environment: null,
      kind: nonEmptyText('FILE'),
      fallback: null,
      required: true,
      help: 'File to write; an existing one is not overwritten',
      remedy: 'Name the file to write',
    },
    force: {
      flag: '--force',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help: 'Overwrite an existing file',
      remedy: 'Give --force alone',
    },
    redact: {
      flag: '--redact',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help:
        'Token ids become zeros; topics, adapter names, salts, extra keys, images and session ids ' +
        'are left out',
      remedy: 'Give --redact alone',
    },
    batches: {
      flag: '--batches',
      environment: null,
      kind: integer(1, Number.MAX_SAFE_INTEGER),
      fallback: null,
      help: 'End after this many messages',
      remedy: 'Give a number of messages, or leave it out',
    },
    seconds: {
      flag: '--seconds',
      environment: null,
      kind: decimal(0, MAX_SECONDS, 'S'),
      fallback: null,
      help: 'End after this time',
      remedy: 'Give a time in seconds, or leave it out',
    },
    engineEndpoint: engineSettings.engineEndpoint,
    engineBind: engineSettings.engineBind,
    engineTopic: engineSettings.engineTopic,
    engineReceiveHwm: engineSettings.engineReceiveHwm,
    engineMaxMessageBytes: engineSettings.engineMaxMessageBytes,
    engine: {
      flag: '--engine',
      environment: 'KVRELAY_ENGINE',
      kind: {
        ...nonEmptyText('NAME'),
        allowed: `text of 1 to ${MAX_ENGINE_CHARACTERS} characters without control characters`,
        parse: (given) =>
          given === '' || given.length > MAX_ENGINE_CHARACTERS ? undefined : text.parse(given),
      },
      fallback: 'unknown',
      help: 'Name and version of the engine, for the header of the file',
      remedy: 'Name the engine, or leave it out',
    },
    blockSize: {
      flag: '--block-size',
      environment: 'KVRELAY_BLOCK_SIZE',
      kind: engineSettings.blockSize.kind,
      fallback: null,
      help: 'Tokens a KV block, for the header of the file',
      remedy: engineSettings.blockSize.remedy,
    },
    description: {
      flag: '--description',
      environment: null,
      kind: text,
      fallback: '',
      help: 'What the recording shows, for the header of the file',
      remedy: 'Describe it in one line, or leave it out',
    },
    ...logFlags,
  },
};

export function loadRecordFlags(argv: readonly string[], env: Environment): RecordFlags {
  return loadFlags(flags, argv, env);
}

export function help(): string {
  return flagsHelp(flags);
}
