/** The configuration of the relay process of a history. */
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import { configOf } from '../support/worker-config.ts';
import type { Setup } from './setup.ts';

const BLOCK_SIZE = 4;

export function configFor(setup: Setup): WorkerConfig {
  const flags: Readonly<Record<string, string | number>> = {
    '--worker-id': 7,
    '--block-size': BLOCK_SIZE,
    '--event-plane': 'nats',
    '--dp-size': setup.ranks,
    '--engine-sockets': setup.isShared ? 'shared' : 'per-rank',
    '--on-engine-gap': setup.policy,
    '--replay-hold-batches': setup.holdBatches,
    '--replay-hold-bytes': setup.holdBytes,
    '--replay-idle-ms': setup.idleMs,
    '--replay-cooldown-ms': setup.cooldownMs,
    '--batching-timeout-ms': setup.batchingTimeoutMs,
    '--max-batch-blocks': setup.maxBatchBlocks,
    '--outbox-bytes': setup.outboxBytes,
    '--nats-resume-delay-ms': setup.resumeDelayMs,
    '--request-plane': setup.requestPlane,
    '--event-buffer': setup.ringEvents,
    ...(setup.hasReplay && { '--replay-endpoint': 'tcp://127.0.0.1:6557' }),
  };
  const given = configOf(
    ...Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)]),
  );
  return { ...given, requestPlaneCodec: setup.codec };
}
