/** A coordinator view and what it holds and tells, on a clock that the test turns. */
import { CoordinatorMetrics } from '../../src/metrics/coordinator-metrics.ts';
import { SourceMetrics } from '../../src/metrics/source-metrics.ts';
import {
  CoordinatorView,
  type TakenBatches,
} from '../../src/stores/lmcache/coordinator/coordinator-view.ts';
import type { ReachableChunks } from '../../src/stores/lmcache/coordinator/reachable-chunks.ts';
import type { ObjectChange } from '../../src/stores/objects/object-change.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { readBatches, type WireFields } from './cache-batches.ts';

export interface CoordinatorTrialOptions {
  readonly maxHolders?: number;
  readonly maxObjects?: number;
  readonly chunks?: ReachableChunks | null;
}

export class CoordinatorTrial {
  readonly metrics: SourceMetrics = new SourceMetrics();
  readonly counts: CoordinatorMetrics = new CoordinatorMetrics();
  /** `+chunk media`, `-chunk media`, `x backend tenant cause`, as they came. */
  readonly told: string[] = [];
  readonly losses: string[] = [];
  readonly state: ObjectState;
  readonly view: CoordinatorView;
  nowMs = 0;

  constructor(options: CoordinatorTrialOptions = {}) {
    const { maxHolders = 100_000, maxObjects = 100_000, chunks = null } = options;
    this.state = new ObjectState({
      maxObjects,
      maxKeyBytes: 1 << 24,
      maxScopes: 100,
      maxAttributeSets: 1000,
      onChange: (change) => this.told.push(shown(change)),
    });
    this.view = new CoordinatorView({
      state: this.state,
      metrics: this.metrics,
      counts: this.counts,
      nowMs: () => this.nowMs,
      chunks,
      maxHolders,
      instanceTimeoutMs: 30_000,
      onLoss: (instanceId, lostBatches) => this.losses.push(`${instanceId} ${lostBatches}`),
    });
  }

  take(...batches: readonly WireFields[]): TakenBatches {
    return this.view.take(readBatches(...batches));
  }

  /** `backend/salt/chunk media`, sorted; a server by its id, a model other than `m1` before the chunk. */
  held(): string[] {
    const rows: string[] = [];
    for (const scope of this.state.scopes()) {
      for (let entry = 0; entry < scope.table.entryEnd; entry++) {
        const object = this.state.objectAt(scope, entry);
        if (object === null) continue;
        const [model = '', salt = ''] = scope.tenantId.split('@');
        const chunk = `${model === 'm1' ? '' : `${model}@`}${shownKey(object.key)}`;
        rows.push(`${shownBackend(scope.backendId)}/${salt}/${chunk} ${object.media.join()}`);
      }
    }
    return rows.sort();
  }

  /** `instance medium chunks holders bytes capacity`, a pool as `*`. */
  usage(): string[] {
    const own = [...this.view.instances.all()].flatMap((one) => [...one.own.values()]);
    return [...own, ...this.view.instances.pools.values()].map((one) =>
      [
        one.instanceId ?? '*',
        one.medium,
        one.chunks,
        one.holders,
        one.bytes,
        one.capacityBytes ?? '-',
      ].join(' '),
    );
  }
}

function shown(change: ObjectChange): string {
  const { backendId, tenantId } = change.scope;
  if (change.type === 'cleared') return `x ${shownBackend(backendId)} ${tenantId} ${change.cause}`;
  const sign = change.type === 'stored' ? '+' : '-';
  return `${sign}${shownKey(change.key)} ${change.media.join()}`.trimEnd();
}

function shownKey(key: Uint8Array): string {
  return Buffer.from(Buffer.from(key).toString(), 'hex').toString();
}

function shownBackend(backendId: string): string {
  return backendId.replace(/^server:/, '');
}
