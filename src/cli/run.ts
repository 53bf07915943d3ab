/** `kvrelay run`: relays one engine's events until a signal. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load-config.ts';
import { maskedSettings } from '../config/masked-settings.ts';
import { createLogger } from '../log.ts';
import { warmUp } from '../warm-up.ts';
import { createWorker, type Worker } from '../worker.ts';
import { logNodeWarnings, runUntilSignal, type StopSignals } from './lifecycle.ts';

/** Resolves with the exit code; throws ConfigError before anything is opened. */
export async function run(argv: readonly string[], signals: StopSignals): Promise<number> {
  const config = loadConfig({
    argv,
    env: process.env,
    readFile: (path) => readFileSync(path, 'utf8'),
    random: randomBytes,
    defaults: process.stderr.isTTY ? { logFormat: 'pretty' } : {},
  });
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  logNodeWarnings(logger);
  logger.debug({ settings: maskedSettings(config) }, 'settings');
  for (const warning of config.warnings) logger.warn(warning);
  const worker = createWorker(config, { logger });
  return runUntilSignal({
    worker,
    logger,
    signals,
    onStarted: () => {
      logger.info({ http: worker.httpUrl }, 'kvrelay is running');
      if (config.warmUp && config.engine !== 'none') void warmUp(config, () => isUnused(worker));
    },
  });
}

/** It goes on, and nothing has come from an engine yet. */
function isUnused(worker: Worker): boolean {
  const { state, ranks } = worker.status();
  return state !== 'stopping' && ranks.every(({ counters }) => counters.received === 0);
}
