/** The pictures of docs/stores.md are those that their script makes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const fileOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

test.each(['stores-ways', 'stores-loss'])(
  'docs/%s.svg is as scripts/store-pictures.mjs',
  (name) => {
    const script = fileOf('scripts/store-pictures.mjs');
    const made = execFileSync(process.execPath, [script, '--print', name], { encoding: 'utf8' });
    expect(made).toContain('<svg');
    expect(readFileSync(fileOf(`docs/${name}.svg`), 'utf8')).toBe(made);
    expect(readFileSync(fileOf('docs/stores.md'), 'utf8')).toContain(`(${name}.svg)`);
  },
);
