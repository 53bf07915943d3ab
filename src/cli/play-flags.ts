/** The flags of `kvrelay play`. */
import type { ZmqAddress } from '../config/addresses.ts';
import { choice, integer, nonEmptyText, toggle, U32_MAX, zmqAddress } from '../config/kinds.ts';
import type { Setting } from '../config/setting.ts';
import type { Environment } from '../config/sources.ts';
import type { ReplayForm } from './play-engine.ts';
import {
  type CommandFlags,
  decimal,
  flagsHelp,
  type Given,
  type LogFlags,
  loadFlags,
  logFlags,
} from './recording-flags.ts';

const MAX_RATE = 10_000_000;
const MAX_DELAY_MS = 3_600_000;

export interface PlayFlags extends LogFlags {
  readonly endpoint: ZmqAddress;
  readonly connect: boolean;
  readonly replayEndpoint: ZmqAddress | null;
  readonly bufferSteps: number;
  readonly replayForm: ReplayForm;
  readonly rate: number | null;
  readonly wait: boolean;
  readonly loop: boolean;
  readonly hold: boolean;
  readonly drop: number;
  readonly seed: number;
  readonly delayMs: number;
  readonly restartAt: number | null;
}

const flags: CommandFlags<PlayFlags> = {
  command: 'play',
  usage: `Usage: kvrelay play FILE [flags]

Is an engine: publishes a recording (or a trace) and answers replay requests as vLLM and SGLang do,
until the recording ends. Prints the addresses as one JSON line on stdout, the counts as another.
Exit codes: 0 clean, 1 failed at run time, 2 bad usage or configuration.
`,
  argument: {
    flag: null,
    environment: null,
    kind: nonEmptyText('FILE'),
    fallback: null,
    required: true,
    help: 'Recording or trace to play',
    remedy: 'Name a file that kvrelay record has written',
  },
  rows: {
    endpoint: {
      flag: '--endpoint',
      environment: null,
      kind: zmqAddress,
      fallback: 'tcp://127.0.0.1:5557',
      help: 'Address of the event socket; port 0: a free one',
      remedy: 'Give an address of this host',
    },
    connect: flag('--connect', 'Connect the event socket, to a relay with --engine-bind'),
    replayEndpoint: {
      flag: '--replay-endpoint',
      environment: null,
      kind: zmqAddress,
      fallback: null,
      help: 'Address of the replay socket; port 0: a free one',
      remedy: 'Give an address of this host, or leave it out',
    },
    bufferSteps: {
      flag: '--buffer-steps',
      environment: null,
      kind: integer(1, 10_000_000, 'BATCHES'),
      fallback: '10000',
      help: 'Batches kept for replays',
      remedy: "Give the engine's buffer_steps",
    },
    replayForm: {
      flag: '--replay-form',
      environment: null,
      kind: choice('old', 'new'),
      fallback: 'new',
      help: 'Replays with a topic frame (vLLM 0.26, SGLang 0.5.22 and newer), or without it',
      remedy: 'Give the form of the engine that is played',
    },
    rate: {
      flag: '--rate',
      environment: null,
      kind: decimal(0, MAX_RATE, 'BATCHES'),
      fallback: null,
      fallbackNote: 'the recorded times',
      help: 'Batches a second; 0: as fast as it goes',
      remedy: 'Give a rate, or leave it out',
    },
    wait: flag('--wait', 'Publish nothing while nobody is subscribed'),
    loop: flag('--loop', 'At the end publish an AllBlocksCleared, number on and play again'),
    hold: flag('--hold', 'At the end stay up for replays, until a signal'),
    drop: {
      flag: '--drop',
      environment: null,
      kind: decimal(0, 1, 'P'),
      fallback: '0',
      help: 'Probability with which a live message is left out; replays have it',
      remedy: 'Give a probability',
    },
    seed: {
      flag: '--seed',
      environment: null,
      kind: integer(0, U32_MAX),
      fallback: '1',
      help: 'Which live messages --drop leaves out',
      remedy: 'Give any number of that range',
    },
    delayMs: {
      flag: '--delay-ms',
      environment: null,
      kind: integer(0, MAX_DELAY_MS, 'MS'),
      fallback: '0',
      help: 'Live messages leave so much later than replays have them',
      remedy: 'Give a time in milliseconds',
    },
    restartAt: {
      flag: '--restart-at',
      environment: null,
      kind: integer(1, Number.MAX_SAFE_INTEGER),
      fallback: null,
      help:
        'After this many messages restart once: sockets closed and opened on the same ports, ' +
        'numbers from 0, nothing to replay, the recording from its start',
      remedy: 'Give a number of messages, or leave it out',
    },
    ...logFlags,
  },
};

function flag(name: `--${string}`, help: string): Setting<boolean> {
  const remedy = `Give ${name} alone`;
  return { flag: name, environment: null, kind: toggle, fallback: 'off', help, remedy };
}

export function loadPlayFlags(argv: readonly string[], env: Environment): Given<PlayFlags> {
  return loadFlags(flags, argv, env);
}

export function help(): string {
  return flagsHelp(flags);
}
