/**
 * The flags of the tools around a relay: tables in the form of the settings of `run`, read, checked
 * and explained under the same rules.
 *
 * Order    flag, environment, default (logs are pretty on a terminal, as those of `run`). Throws ConfigError for the first thing that cannot be used.
 */
import { settingHelp } from '../config/help-text.ts';
import type { Kind } from '../config/kinds.ts';
import { processSettings } from '../config/process-settings.ts';
import type { Setting, SettingRows } from '../config/setting.ts';
import type { Environment } from '../config/sources.ts';
import { ConfigError } from '../errors.ts';
import type { LogFormat, LogLevel } from '../log.ts';

export interface LogFlags {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

export const logFlags: SettingRows<LogFlags> = {
  logLevel: processSettings.logLevel,
  logFormat: processSettings.logFormat,
};

/** What one command is told: an argument of its own, where it has one, and flags. */
export interface CommandFlags<Values> {
  readonly command: string;
  readonly usage: string;
  /** The word that stands alone; null: there is none. */
  readonly argument: Setting<string> | null;
  readonly rows: SettingRows<Values>;
}

export type Given<Values> = Values & { readonly argument: string };

/** The values of all rows, and the argument (empty where the command has none). */
export function loadFlags<Values>(
  flags: CommandFlags<Values>,
  argv: readonly string[],
  env: Environment,
): Given<Values> {
  const { argument, rows } = flags;
  const words = readWords(flags, argv);
  const values: Record<string, unknown> = {};
  for (const [key, given] of Object.entries<Setting<unknown>>(rows)) {
    const isForReaders = key === 'logFormat' && process.stderr.isTTY;
    const row = isForReaders ? { ...given, fallback: 'pretty' } : given;
    values[key] = settingValue(row, row.flag === null ? undefined : words.get(row.flag), env);
  }
  values.argument = argument === null ? '' : settingValue(argument, words.get(ARGUMENT), env);
  // Sound by the type of the table: each row's kind yields the value of its key.
  return values as Given<Values>;
}

const ARGUMENT = '';

/** Texts by flag as they stand on the command line; the lone word under the empty name. */
function readWords<Values>(
  { command, argument, rows }: CommandFlags<Values>,
  argv: readonly string[],
): Map<string, string> {
  const byFlag = new Map<string, Setting<unknown>>();
  for (const row of Object.values<Setting<unknown>>(rows)) {
    if (row.flag !== null) byFlag.set(row.flag, row);
  }
  const words = new Map<string, string>();
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const isArgument = argument !== null && !word.startsWith('-');
    const [flag, attached] = isArgument ? [ARGUMENT, word] : splitOnce(word);
    const row = isArgument ? argument : byFlag.get(flag);
    if (row === undefined) throw unknownFlag(command, flag);
    if (words.has(flag)) {
      throw new ConfigError({
        setting: flag === ARGUMENT ? `argument '${word}'` : flag,
        problem: flag === ARGUMENT ? 'is one too many' : 'is given twice',
        allowed: 'to give it once',
        remedy: 'Remove one of the two',
      });
    }
    words.set(flag, attached ?? nextWord(flag, row, rest));
  }
  return words;
}

function splitOnce(word: string): [string, string | undefined] {
  const equals = word.indexOf('=');
  return equals < 0 ? [word, undefined] : [word.slice(0, equals), word.slice(equals + 1)];
}

function nextWord(flag: string, { kind, remedy }: Setting<unknown>, rest: string[]): string {
  if (kind.placeholder === null) return 'on';
  const value = rest[0]?.startsWith('--') ? undefined : rest.shift();
  if (value !== undefined) return value;
  throw new ConfigError({ setting: flag, problem: 'has no value', allowed: kind.allowed, remedy });
}

function unknownFlag(command: string, word: string): ConfigError {
  const isFlag = word.startsWith('-');
  return new ConfigError({
    setting: isFlag ? word : `argument '${word}'`,
    problem: isFlag ? 'is not a flag' : 'belongs to no flag',
    allowed: `the flags kvrelay ${command} --help lists`,
    remedy: 'Check the spelling, or leave it out',
  });
}

function settingValue(row: Setting<unknown>, word: string | undefined, env: Environment): unknown {
  const { flag, environment, kind, fallback, required, secret, notYet, remedy } = row;
  const { allowed } = kind;
  const fromEnvironment = environment === null ? undefined : env[environment];
  const text = word ?? fromEnvironment ?? fallback;
  const setting = (word === undefined && fromEnvironment !== undefined ? environment : flag) ?? '';
  const name = setting === '' ? (kind.placeholder ?? '') : setting;
  if (text === null) {
    if (!required) return null;
    throw new ConfigError({ setting: name, problem: 'is missing', allowed, remedy });
  }
  const value = kind.parse(text);
  if (value !== undefined) return value;
  const problem = notYet?.includes(text) ? { problem: 'is not supported yet' } : {};
  const shown = secret ? {} : { value: text };
  throw new ConfigError({ setting: name, ...shown, ...problem, allowed, remedy });
}

/** The help of one command, ends with a line feed. */
export function flagsHelp<Values>({ usage, rows }: CommandFlags<Values>): string {
  const flags = Object.values<Setting<unknown>>(rows).map(settingHelp);
  return [usage, ...flags].join('\n');
}

/** Digits with an optional fraction: no sign, no exponent. */
export function decimal(min: number, max: number, placeholder = 'N'): Kind<number> {
  return {
    placeholder,
    allowed: `a number from ${min} to ${max}`,
    isNumber: true,
    parse: (text) => {
      if (!/^\d{1,12}(\.\d{1,9})?$/.test(text)) return undefined;
      const value = Number(text);
      return value >= min && value <= max ? value : undefined;
    },
  };
}
