/**
 * Key patterns: what a Mooncake object key says of the block that it holds.
 *
 * In/out   an object key; its block hash as text with what stands around it, or null. Nothing is guessed.
 * Presets  the keys that released engines make; `docs/mooncake-keys.md` has packages and versions.
 * Bounds   keys above MAX_KEY_CHARACTERS match nothing; a user's pattern is matched in one pass.
 * Throws   keyPatternOf: ConfigError. parse and parsedHashOf never.
 */
import { ConfigError } from '../../errors.ts';
import { LinearMatcher } from './linear-matcher.ts';
import { PatternFault, parsePattern } from './linear-pattern.ts';

/** What a key says. Groups that took no part in the match are left out. */
export interface ParsedKey {
  /** Hash of the block, as in the key: hex digits or a decimal number, in front of them perhaps `-`. */
  readonly blockHash: string;
  readonly encoding: 'hex' | 'decimal';
  readonly model?: string;
  /** Rank within the engine that wrote the object (tensor parallel), 0 and up; never a dp rank. */
  readonly rank?: number;
  /** All named groups, `hash`, `model` and `rank` among them. */
  readonly groups: Readonly<Record<string, string>>;
}

export interface KeyPattern {
  /** Name of the preset, or `custom`. */
  readonly name: string;
  /** Null for a key of another convention, above the bound, or whose hash is no number of 64 bits. */
  parse(objectKey: string): ParsedKey | null;
}

type Match = (objectKey: string) => Readonly<Record<string, string | undefined>> | null;

/** UTF-16 units; engines' own keys stay below a third of it. */
const MAX_KEY_CHARACTERS = 1024;
const MAX_PATTERN_CHARACTERS = 512;
const MAX_RANK_DIGITS = 9;

const U64_DIGITS = 16;
const DIGEST = '(?:[0-9a-f]{2}){8,}';

/**
 * What the engines' keys look like: expressions of ours, which no key within the bound makes slow. Each of
 * their parts ends at a character that it cannot take, the prefixes aside.
 */
const PRESETS: ReadonlyMap<string, readonly RegExp[]> = new Map([
  [
    // [<cache prefix>@]<model>[@store_…]@tp_rank:<n>@pcp<n>@dcp<n>@pp_rank:<n>@group:<n>@<block hash>
    'vllm',
    [
      new RegExp(
        '^(?:(?<prefix>.+)@)?(?<model>(?!store_[a-z]+:)[^@]+)(?<namespace>(?:@store_[a-z]+:[^@]+)*)@tp_rank:(?<rank>\\d+)' +
          `@pcp(?<pcp>\\d+)@dcp(?<dcp>\\d+)@pp_rank:(?<pp>\\d+)@group:(?<group>\\d+)@(?<hash>${DIGEST})$`,
      ),
    ],
  ],
  [
    // <model>@pcp<n>@dcp<n>@head_or_tp_rank:<n>[@pp_rank:<n>]@group:<n>@cache_role:kv@cache_family:<name>
    // [@layer_id:<n>]@<block hash>
    'vllm-ascend',
    [
      new RegExp(
        '^(?<model>[^@]+)@pcp(?<pcp>\\d+)@dcp(?<dcp>\\d+)@head_or_tp_rank:(?<rank>\\d+)(?:@pp_rank:(?<pp>\\d+))?' +
          '@group:(?<group>\\d+)@cache_role:kv@cache_family:(?<family>\\w+)(?:@layer_id:(?<layer>\\d+))?' +
          `@(?<hash>${DIGEST})$`,
      ),
    ],
  ],
  [
    // [<prefix>_]<page hash>_<shard>_k or _v; the events carry the first 8 bytes of the page hash.
    'sglang',
    [
      /^(?:(?<prefix>.+)_)?(?<digest>(?<hash>[0-9a-f]{16})[0-9a-f]{48})_(?<shard>|\d+(?:_\d+)?|dcp\d+_cp\d+(?:_\d+)?)_(?<part>[kv])$/,
    ],
  ],
  [
    'lmcache',
    [
      // In the engine's process: <model>@<world size>@<worker>@<chunk hash>@<dtype>[@<layer>][@<tag>%<value>]…
      new RegExp(
        '^(?<model>[^@]+)@(?<world>\\d{1,7})@(?<rank>\\d+)@(?<hash>-?[0-9a-f]{1,16})@(?<dtype>[a-z]\\w*)' +
          '(?:@(?<layer>\\d+))?(?<tags>(?:@[^@%]+%[^@]*)*)$',
      ),
      // Multiprocess server: <model>@<packed ranks, 8 digits>@<object group>@<chunk hash>[@<salt>]
      new RegExp(
        '^(?<model>[^@]+)@(?<ranks>[0-9a-f]{8})@(?<group>[0-9a-f]+)' +
          `@(?<hash>${DIGEST})(?:@(?<salt>[^@]+))?$`,
      ),
    ],
  ],
]);

/**
 * The pattern of `--mooncake-key-pattern`: a preset by its name, or a pattern whose named group `hash`
 * (or `hash_decimal`) is the block's hash.
 */
export function keyPatternOf(setting: string): KeyPattern {
  const preset = PRESETS.get(setting);
  if (preset !== undefined) {
    return patternOf(setting, (objectKey) => {
      for (const expression of preset) {
        const match = expression.exec(objectKey);
        if (match !== null) return match.groups ?? null;
      }
      return null;
    });
  }
  if (setting.length > MAX_PATTERN_CHARACTERS) {
    throw refused(setting, `has ${setting.length} characters`);
  }
  const matcher = matcherOf(setting);
  return patternOf('custom', (objectKey) => matcher.match(objectKey));
}

/**
 * The hash as kvrelay keeps the hashes of the engine's events: u64. Of hex digits the last 16 count, as
 * of a digest in an event the last 8 bytes; a number below 0 is taken as two's complement. Null where the
 * text is no number of that kind: a decimal one below −2^63 or above 2^64 − 1.
 */
export function parsedHashOf(parsed: Pick<ParsedKey, 'blockHash' | 'encoding'>): bigint | null {
  const { blockHash, encoding } = parsed;
  const isNegative = blockHash.startsWith('-');
  const digits = isNegative ? blockHash.slice(1) : blockHash;
  if (encoding === 'hex') {
    if (!/^[0-9a-fA-F]+$/.test(digits)) return null;
    // A digest has no sign.
    if (isNegative && digits.length > U64_DIGITS) return null;
    return inRange(BigInt(`0x${digits.slice(-U64_DIGITS)}`), isNegative);
  }
  return /^\d{1,20}$/.test(digits) ? inRange(BigInt(digits), isNegative) : null;
}

function inRange(magnitude: bigint, isNegative: boolean): bigint | null {
  if (magnitude > (isNegative ? 2n ** 63n : 2n ** 64n - 1n)) return null;
  return BigInt.asUintN(64, isNegative ? -magnitude : magnitude);
}

function patternOf(name: string, match: Match): KeyPattern {
  return {
    name,
    parse(objectKey) {
      if (objectKey.length > MAX_KEY_CHARACTERS) return null;
      const groups = match(objectKey);
      return groups === null ? null : parsedKeyOf(groups);
    },
  };
}

function parsedKeyOf(match: Readonly<Record<string, string | undefined>>): ParsedKey | null {
  const groups: Record<string, string> = {};
  for (const [name, text] of Object.entries(match)) {
    if (text !== undefined) groups[name] = text;
  }
  const { hash, hash_decimal: decimal, model, rank } = groups;
  const blockHash = hash ?? decimal;
  if (blockHash === undefined) return null;
  const encoding = hash === undefined ? 'decimal' : 'hex';
  if (parsedHashOf({ blockHash, encoding }) === null) return null;
  return {
    blockHash,
    encoding,
    ...(model === undefined ? {} : { model }),
    ...(isRank(rank) ? { rank: Number(rank) } : {}),
    groups,
  };
}

function isRank(text: string | undefined): boolean {
  return text !== undefined && text.length <= MAX_RANK_DIGITS && /^\d+$/.test(text);
}

function matcherOf(setting: string): LinearMatcher {
  try {
    const program = parsePattern(setting);
    const hashGroups = program.groupNames.filter((name) => /^hash(_decimal)?$/.test(name));
    if (hashGroups.length === 1) return new LinearMatcher(program);
    throw new PatternFault(
      hashGroups.length === 0 ? 'is no preset and has no group hash' : 'has two hashes',
    );
  } catch (error) {
    if (error instanceof PatternFault) throw refused(setting, error.message);
    throw error;
  }
}

function refused(setting: string, problem: string): ConfigError {
  return new ConfigError({
    setting: '--mooncake-key-pattern',
    value: setting,
    problem,
    allowed: `${[...PRESETS.keys()].join(', ')}, or a pattern of up to ${MAX_PATTERN_CHARACTERS} characters with one group (?<hash>…)`,
    remedy: 'docs/mooncake-keys.md lists the presets and what a pattern may hold',
  });
}
