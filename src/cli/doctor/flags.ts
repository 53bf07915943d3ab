/** The flags of `kvrelay doctor`: those of `run`, and its own. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { helpText } from '../../config/help-text.ts';
import { toggle } from '../../config/kinds.ts';
import { loadConfig } from '../../config/load-config.ts';
import type { Environment } from '../../config/sources.ts';
import type { WorkerConfig } from '../../config/worker-config.ts';
import { type CommandFlags, decimal, flagsHelp, loadFlags } from '../recording-flags.ts';

const MAX_SECONDS = 600;

interface OwnFlags {
  readonly json: boolean;
  readonly seconds: number;
}

export interface DoctorFlags extends OwnFlags {
  readonly config: WorkerConfig;
  readonly isBlockSizeGiven: boolean;
  readonly isWorkerIdGiven: boolean;
}

const flags: CommandFlags<OwnFlags> = {
  command: 'doctor',
  usage: `Usage: kvrelay doctor [flags of run] [flags]

Checks what keeps kvrelay run from working with the same flags and environment: engine, replay, event
plane, discovery, worker, router, this host. A line for each check, with what to do about it. Listens
for a while and changes nothing; a relay that runs goes on.
Exit codes: 0 nothing failed, 1 something did, 2 bad usage or configuration.
`,
  argument: null,
  rows: {
    json: {
      flag: '--json',
      environment: null,
      kind: toggle,
      fallback: 'off',
      help: 'One JSON object a check: name, state, rank, text, remedy',
      remedy: 'Give --json alone',
    },
    seconds: {
      flag: '--seconds',
      environment: null,
      kind: decimal(1, MAX_SECONDS, 'S'),
      fallback: '5',
      help: 'Longest time for everything; most of it waits for an engine that is silent',
      remedy: 'Give a time in seconds',
    },
  },
};

/** Throws ConfigError for what ends the start of `run` too, but a missing block size: that is a check. */
export function loadDoctorFlags(argv: readonly string[], env: Environment): DoctorFlags {
  const [own, ofRun] = splitArguments(argv);
  // What is not given is what differs between two loads.
  const [config, other] = ['16', '17'].map((blockSize) =>
    loadConfig({
      argv: ofRun,
      env,
      readFile: (path) => readFileSync(path, 'utf8'),
      random: randomBytes,
      defaults: { blockSize },
    }),
  ) as [WorkerConfig, WorkerConfig];
  return {
    ...loadFlags(flags, own, {}),
    config,
    isBlockSizeGiven: config.blockSize === other.blockSize,
    isWorkerIdGiven: config.workerId !== null && config.workerId === other.workerId,
  };
}

export function help(): string {
  return `${flagsHelp(flags)}\nThe flags of run:\n\n${helpText('run')}`;
}

/** Our own flags with their values, and the rest. */
function splitArguments(argv: readonly string[]): [own: string[], ofRun: string[]] {
  const own: string[] = [];
  const ofRun: string[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const row = Object.values(flags.rows).find(({ flag }) => flag === word.split('=', 1)[0]);
    (row === undefined ? ofRun : own).push(word);
    const takesNext = row !== undefined && row.kind.placeholder !== null && !word.includes('=');
    const next = takesNext && !rest[0]?.startsWith('--') ? rest.shift() : undefined;
    if (next !== undefined) own.push(next);
  }
  return [own, ofRun];
}
