import { randomBytes } from 'node:crypto';
import { loadConfig } from '../../src/config/load-config.ts';
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import type { ScenarioSettings } from './scenarios.ts';

/** A configuration as the command line would make it, without this machine's environment. */
export function configOf(...argv: string[]): WorkerConfig {
  return loadConfig({
    argv,
    env: {},
    readFile: () => {
      throw new Error('no configuration file in tests');
    },
    random: randomBytes,
  });
}

/** Flags of `run` that stand for a scenario's settings. */
export function flagsOf(settings: ScenarioSettings): string[] {
  const flags = [
    ['--compat', 'strict'],
    ['--http', 'off'],
    ['--block-size', String(settings.kv_block_size)],
    ['--worker-id', settings.worker_id],
    ['--dp-rank', String(settings.dp_rank)],
    ['--batching-timeout-ms', String(settings.batching_timeout_ms ?? 0)],
    ['--image-token-id', settings.image_token_id],
    ['--video-token-id', settings.video_token_id],
  ];
  return flags.flatMap(([flag, value]) => (value == null ? [] : [String(flag), String(value)]));
}
