/** `kvrelay demo`: the worker of `run` on a recorded engine stream. */
import { ConfigError } from '../errors.ts';
import type { StopSignals } from './lifecycle.ts';

/** Resolves with the exit code. */
export function demo(_argv: readonly string[], _signals: StopSignals): Promise<number> {
  throw new ConfigError({
    setting: 'demo',
    problem: 'is not built yet',
    allowed: 'run',
    remedy: 'Start kvrelay run beside an engine',
  });
}
