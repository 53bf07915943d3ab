/** The help texts. Flags, variables, allowed values and defaults come from the settings table. */
import type { Setting } from './setting.ts';
import { settingKeys, settingOf } from './settings-table.ts';

/** Those that relay: they take the settings of the table. */
export const COMMANDS = ['run', 'demo'] as const;
export type Command = (typeof COMMANDS)[number];

/** Those around a relay, each with flags of its own. */
export const TOOLS = ['record', 'play', 'inspect', 'query', 'doctor'] as const;
export type Tool = (typeof TOOLS)[number];

export function isCommand(word: string | undefined): word is Command {
  return COMMANDS.some((command) => command === word);
}

export function isTool(word: string | undefined): word is Tool {
  return TOOLS.some((tool) => tool === word);
}

const MAX_COLUMNS = 100;

const OVERVIEW = `kvrelay: relays the KV-cache events of one LLM inference worker to prefix-aware routers.

Usage: kvrelay <command> [flags]

  run     relay until SIGTERM or SIGINT; a second signal forces the exit
  demo    the same on a recorded engine stream, without engine, broker or router
  record  save an engine's messages to a file
  play    be the engine: publish a recording, answer replays
  inspect print the messages of a recording, an engine, a ZMQ plane or NATS
  doctor  check a configuration against what is there, and say what is wrong
  query   ask a running relay: its status, its events, its blocks

  kvrelay <command> --help    all flags of the command
  kvrelay --version           the version
`;

const USAGE: Record<Command, string> = {
  run: `Usage: kvrelay run --block-size TOKENS [flags]

Relays the events of one engine until SIGTERM or SIGINT. Logs go to stderr.
Exit codes: 0 clean, 1 failed at run time, 2 bad usage or configuration.
`,
  demo: `Usage: kvrelay demo [flags]

Relays a recorded engine stream over and over, with the status page open. Takes the flags of run.
`,
};

/** The help of one command; null: of kvrelay as a whole. Ends with a line feed. */
export function helpText(command: Command | null): string {
  if (command === null) return OVERVIEW;
  const withFlag = settingKeys.filter((key) => settingOf(key).flag !== null);
  const withoutFlag = settingKeys.filter((key) => settingOf(key).flag === null);
  return [
    USAGE[command],
    'A flag counts before its environment variable, that before the --config file, that before the',
    'default. The file has the flag names in camelCase as its keys.\n',
    ...withFlag.map((key) => settingHelp(settingOf(key))),
    'Environment only (in the file: natsAuthToken for NATS_AUTH_TOKEN, and so on):\n',
    ...withoutFlag.map((key) => settingHelp(settingOf(key))),
  ].join('\n');
}

/** What the help says about one setting. Ends with a line feed. */
export function settingHelp(setting: Setting<unknown>): string {
  const { flag, environment, kind, help, fallback, fallbackNote, required } = setting;
  const { placeholder } = kind;
  const value = flag === null || placeholder === null ? '' : ` ${placeholder}`;
  const variable = flag === null || environment === null ? '' : `  [${environment}]`;
  const fallbackText = fallbackNote ?? (fallback === '' ? 'empty' : (fallback ?? 'none'));
  const ending = required ? 'Required.' : `Default: ${fallbackText}.`;
  const sentences = `${help}. Allowed: ${kind.allowed}. ${ending}`;
  return `  ${flag ?? environment}${value}${variable}\n${wrapped(sentences, '      ')}\n`;
}

function wrapped(sentences: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of sentences.split(' ')) {
    if (line !== indent && line.length + 1 + word.length > MAX_COLUMNS) {
      lines.push(line);
      line = indent;
    }
    line += line === indent ? word : ` ${word}`;
  }
  return [...lines, line].join('\n');
}
