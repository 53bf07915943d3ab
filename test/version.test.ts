import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VERSION } from '../src/version.ts';

test('the version shown is that of the package', () => {
  const json = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  expect(JSON.parse(json)).toMatchObject({ name: 'kvrelay', version: VERSION });
});
