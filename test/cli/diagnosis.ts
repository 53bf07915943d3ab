/** `kvrelay doctor` as a process, and what it found. */
import { expect } from 'vitest';
import { CHECK_NAMES, type Check, type CheckName } from '../../src/cli/doctor/check.ts';
import { CliProcess } from './record-process.ts';

export interface Diagnosis {
  readonly code: number | null;
  readonly checks: readonly Check[];
  /** Everything it has written. */
  readonly output: string;
  /** The one check of this name; fails where there are more. */
  of(name: CheckName): Check;
}

/** Flags that keep a trial from addresses that others may have. */
export const APART = ['--http', 'off', '--plane-endpoint', 'tcp://127.0.0.1:0'] as const;

export async function diagnose(
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Diagnosis> {
  const child = new CliProcess(['doctor', '--json', ...flags], [], env);
  const code = await child.exitCode();
  const checks = child.results as unknown as Check[];
  const of = (name: CheckName): Check => {
    const found = checks.filter((check) => check.name === name);
    expect(found, `${name} in ${child.stdout}${child.stderr}`).toHaveLength(1);
    return found[0] as Check;
  };
  // Whatever is wrong, every check says so, or why it says nothing.
  expect([...new Set(checks.map(({ name }) => name))]).toEqual(CHECK_NAMES);
  const failed = checks.some(({ state }) => state === 'fail');
  expect(code).toBe(failed ? 1 : 0);
  for (const { state, remedy } of checks) {
    expect(remedy !== null).toBe(state === 'warn' || state === 'fail');
  }
  return { code, checks, output: child.stdout + child.stderr, of };
}
