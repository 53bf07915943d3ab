/** LMCache's MP servers that post here, as `/api/status` and the metrics show them. */
import type { CoordinatorReading } from './metrics/coordinator-families.ts';
import type { CoordinatorStatus } from './status/coordinator-status.ts';
import type { Compartment } from './stores/lmcache/coordinator/compartment.ts';
import type { CoordinatorSource } from './stores/lmcache/coordinator/coordinator-source.ts';
import type { Instance } from './stores/lmcache/coordinator/instances.ts';
import { SYSTEM_STORE_CLOCK } from './stores/store-clock.ts';

const MAX_INSTANCES = 64;
const MAX_COMPARTMENTS = 128;

export function coordinatorStatus(source: CoordinatorSource): CoordinatorStatus {
  const { forward, counts } = source;
  const { instances } = source.view;
  const byAge = [...instances.all()].sort((one, other) => other.lastHeardMs - one.lastHeardMs);
  const compartments = compartmentsOf(source).sort((one, other) => other.bytes - one.bytes);
  return {
    endpoint: source.reading().endpoint,
    forward: forward && {
      endpoint: forward.url,
      failures: forward.failures,
      last_answer_age_ms: forward.lastAnswerAgeMs,
    },
    instance_count: instances.size,
    instances: byAge.slice(0, MAX_INSTANCES).map(instanceStatus),
    compartment_count: compartments.length,
    compartments: compartments.slice(0, MAX_COMPARTMENTS).map((one) => ({
      instance_id: one.instanceId,
      tier: one.tier,
      backend: one.backend,
      chunks: one.chunks,
      keys: one.holders,
      bytes: one.bytes,
      capacity_bytes: one.capacityBytes,
    })),
    keys: instances.account.holders,
    untracked_keys: instances.account.untracked,
    batches: counts.batches,
    refused: counts.refusals,
  };
}

function instanceStatus(instance: Instance): CoordinatorStatus['instances'][number] {
  const { id, incarnation, lastSeq, isWhole, hasLeft, lostBatches, restarts } = instance;
  return {
    instance_id: id,
    incarnation: incarnation < 0 ? null : incarnation,
    last_seq: lastSeq,
    whole: isWhole,
    left: hasLeft,
    last_heard_age_ms: Math.round(SYSTEM_STORE_CLOCK.nowMs() - instance.lastHeardMs),
    lost_batches: lostBatches,
    restarts,
  };
}

export function coordinatorReading(source: CoordinatorSource): CoordinatorReading {
  const { instances } = source.view;
  return {
    counts: source.counts,
    untrackedKeys: instances.account.untracked,
    instances: instances.size,
    compartments: compartmentsOf(source).map((one) => ({
      instanceId: one.instanceId ?? '',
      tier: one.tier,
      backend: one.backend,
      chunks: one.chunks,
      keys: one.holders,
      bytes: one.bytes,
      capacityBytes: one.capacityBytes,
    })),
  };
}

function compartmentsOf({ view: { instances } }: CoordinatorSource): Compartment[] {
  const own = [...instances.all()].flatMap((instance) => [...instance.own.values()]);
  return [...own, ...instances.pools.values()];
}
