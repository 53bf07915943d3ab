import { type ConfigSources, loadConfig } from '../../src/config/load-config.ts';
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import { ConfigError } from '../../src/errors.ts';

/** Loads with the one required flag given, an empty environment and no file. */
export function load(argv: readonly string[], sources: Partial<ConfigSources> = {}): WorkerConfig {
  return loadBare(['--block-size', '16', ...argv], sources);
}

export function loadBare(
  argv: readonly string[],
  sources: Partial<ConfigSources> = {},
): WorkerConfig {
  return loadConfig({
    argv,
    env: {},
    readFile: () => {
      throw new Error('ENOENT: no such file');
    },
    random: (byteCount) => new Uint8Array(byteCount).fill(0xff),
    ...sources,
  });
}

/** The one line a refusal shows. */
export function refusal(loading: () => unknown): string {
  try {
    loading();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('nothing was refused');
}
