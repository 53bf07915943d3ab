/** The configuration file: one JSON object, its keys the flag names in camelCase. */
import { z } from 'zod';
import { ConfigError, messageOf } from '../errors.ts';
import { toggle } from './kinds.ts';
import { keyByFileKey, notYetByFileKey } from './lookup.ts';
import { refuseNotYet } from './not-yet.ts';
import { type SettingKey, settingOf } from './settings-table.ts';
import type { Given, GivenSettings } from './sources.ts';

type FileValue = string | number | boolean;

const fileShape = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

export function fromFile(given: Given, readFile: (path: string) => string): GivenSettings {
  const path = given.text;
  const settings: GivenSettings = new Map();
  for (const [fileKey, value] of Object.entries(parseFile(given, readFile))) {
    const name = `${fileKey} in ${path}`;
    const key = keyByFileKey.get(fileKey);
    const notYet = notYetByFileKey.get(fileKey);
    if (key !== undefined && key !== 'config') {
      settings.set(key, { name, text: fileText(name, fileKey, key, value), source: 'file' });
    } else if (notYet !== undefined) {
      refuseNotYet(notYet, name, String(value));
    } else {
      throw new ConfigError({
        setting: name,
        problem: 'is not a setting',
        allowed: 'flag names in camelCase, such as blockSize',
        remedy: 'Check the spelling, or remove it',
      });
    }
  }
  return settings;
}

function parseFile(given: Given, readFile: (path: string) => string): Record<string, FileValue> {
  const refuse = (problem: string, cause: string): ConfigError =>
    new ConfigError({
      setting: given.name,
      value: given.text,
      problem: `${problem} (${cause})`,
      allowed: 'a readable file with one JSON object of texts, numbers and booleans',
      remedy: 'Correct the file or its path',
    });
  let content: string;
  try {
    content = readFile(given.text);
  } catch (error) {
    throw refuse('cannot be read', messageOf(error));
  }
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch {
    // The parser's own message would repeat a piece of the file, which may hold a password.
    throw refuse('is not JSON', 'the parser stopped');
  }
  const file = fileShape.safeParse(json);
  if (file.success) return file.data;
  const [issue] = file.error.issues;
  throw refuse('cannot be used', issue?.path.join('.') || 'not an object');
}

/** The text a flag would have carried. */
function fileText(name: string, fileKey: string, key: SettingKey, value: FileValue): string {
  const { kind, flag, remedy, secret } = settingOf(key);
  if (kind.placeholder === null) {
    const isOn = typeof value === 'boolean' ? value : toggle.parse(String(value));
    // `noIndexer: true` says what `--no-indexer` says.
    if (isOn !== undefined) return isOn === !flag?.startsWith('--no-') ? 'on' : 'off';
  }
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && kind.isNumber) {
    if (Number.isSafeInteger(value) || !Number.isInteger(value)) return String(value);
    throw new ConfigError({
      setting: name,
      value: String(value),
      problem: 'is not exact as a JSON number',
      allowed: kind.allowed,
      remedy: `Write it in quotes: "${fileKey}": "…"`,
    });
  }
  const shown = secret ? {} : { value: String(value) };
  throw new ConfigError({ setting: name, ...shown, allowed: kind.allowed, remedy });
}
