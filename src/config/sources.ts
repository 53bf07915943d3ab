/**
 * The three sources of settings, each read into the same form: which setting, under which name, with
 * which text. Nothing is interpreted here but names; unknown and unsupported ones end the start.
 */
import { ConfigError } from '../errors.ts';
import { keyByFlag, notYetByFlag } from './lookup.ts';
import { notYetSettings, refuseNotYet } from './not-yet.ts';
import { type SettingKey, settingKeys, settingName, settingOf } from './settings-table.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Given {
  /** As the user wrote it, for errors: `--block-size`, `KVRELAY_BLOCK_SIZE`, `blockSize in f.json`. */
  readonly name: string;
  readonly text: string;
  readonly source: 'flag' | 'environment' | 'file' | 'default';
}

export type GivenSettings = Map<SettingKey, Given>;

const KNOWN_FLAGS = 'the flags kvrelay run --help lists';

/** `--flag value`, `--flag=value`, and flags that stand alone. Each flag at most once. */
export function fromArguments(argv: readonly string[]): GivenSettings {
  const given: GivenSettings = new Map();
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const equals = word.indexOf('=');
    const flag = equals < 0 ? word : word.slice(0, equals);
    const attached = equals < 0 ? undefined : word.slice(equals + 1);
    const key = keyByFlag.get(flag);
    if (key === undefined) {
      refuseUnlessAccepted(flag, attached ?? takeValue(rest));
      continue;
    }
    if (given.has(key)) {
      throw new ConfigError({
        setting: flag,
        problem: 'is given twice',
        allowed: 'to give it once',
        remedy: 'Remove one of the two',
      });
    }
    const text = flagText(key, flag, attached, rest);
    given.set(key, { name: flag, text, source: 'flag' });
  }
  return given;
}

function flagText(
  key: SettingKey,
  flag: string,
  attached: string | undefined,
  rest: string[],
): string {
  const { kind, remedy } = settingOf(key);
  if (kind.placeholder === null) {
    if (!flag.startsWith('--no-')) return attached ?? 'on';
    if (attached === undefined) return 'off';
    throw new ConfigError({
      setting: flag,
      value: attached,
      problem: 'takes no value',
      allowed: `${flag} alone`,
      remedy,
    });
  }
  const value = attached ?? takeValue(rest);
  if (value !== undefined) return value;
  throw new ConfigError({
    setting: flag,
    problem: 'has no value',
    allowed: kind.allowed,
    remedy,
  });
}

/** The next word where it can be a value: `-1` can (and is refused later, by name), `--x` cannot. */
function takeValue(rest: string[]): string | undefined {
  return rest[0]?.startsWith('--') ? undefined : rest.shift();
}

function refuseUnlessAccepted(flag: string, value: string | undefined): void {
  const notYet = notYetByFlag.get(flag);
  if (notYet !== undefined) {
    refuseNotYet(notYet, flag, value);
    return;
  }
  const isFlag = flag.startsWith('-');
  throw new ConfigError({
    setting: isFlag ? flag : `argument '${flag}'`,
    problem: isFlag ? 'is not a flag' : 'belongs to no flag',
    allowed: KNOWN_FLAGS,
    remedy: 'Check the spelling, or leave it out',
  });
}

/** What the environment gives; an empty variable is a value, as an empty flag is. */
export function fromEnvironment(env: Environment): GivenSettings {
  const given: GivenSettings = new Map();
  for (const key of settingKeys) {
    const { environment } = settingOf(key);
    const text = environment === null ? undefined : env[environment];
    if (environment === null || text === undefined) continue;
    given.set(key, { name: environment, text, source: 'environment' });
  }
  for (const setting of notYetSettings) {
    const { environment } = setting;
    const text = environment === null ? undefined : env[environment];
    // An empty one asks for nothing: charts set variables they leave empty.
    if (environment !== null && text) refuseNotYet(setting, environment, text);
  }
  return given;
}

/** The defaults of the table, or of the command where it has its own. */
export function fromDefaults(own: Readonly<Partial<Record<SettingKey, string>>>): GivenSettings {
  const given: GivenSettings = new Map();
  for (const key of settingKeys) {
    const text = own[key] ?? settingOf(key).fallback;
    if (text !== null) given.set(key, { name: settingName(key), text, source: 'default' });
  }
  return given;
}
