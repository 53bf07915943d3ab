import { expect, test } from 'vitest';
import { COMMANDS, helpText, isCommand } from '../../src/config/help-text.ts';
import { settingKeys, settingOf, settingsTable } from '../../src/config/settings-table.ts';

test.each(COMMANDS)('the help of %s lists every flag with its variable and default', (command) => {
  const help = helpText(command);
  for (const key of settingKeys) {
    const { flag, environment, fallback, fallbackNote } = settingOf(key);
    const entry = help.split('\n\n').find((part) => part.startsWith(`  ${flag ?? environment}`));
    const text = entry?.replace(/\s+/g, ' ');
    expect(text).toContain(environment ?? '');
    const shown = fallbackNote ?? (fallback === '' ? 'empty' : (fallback ?? 'none'));
    expect(text).toContain(key === 'blockSize' ? 'Required.' : `Default: ${shown}.`);
  }
  for (const line of help.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
});

test('the overview names every command', () => {
  for (const command of COMMANDS) expect(helpText(null)).toContain(`  ${command} `);
  expect(isCommand('run')).toBe(true);
  expect(isCommand('constructor')).toBe(false);
  expect(isCommand(undefined)).toBe(false);
});

test('every flag, variable and key of the table is its own', () => {
  const flags = settingKeys.flatMap((key) => settingsTable[key].flag ?? []);
  const variables = settingKeys.flatMap((key) => settingsTable[key].environment ?? []);
  expect(new Set(flags).size).toBe(flags.length);
  expect(new Set(variables).size).toBe(variables.length);
});
