/**
 * CoordinatorView: what the MP servers of LMCache report, in the order of their numbers, applied to the state.
 *
 * Numbers  of each server from 1 in each of its incarnations. Old ones, and batches of an older incarnation,
 *          are dropped and counted.
 * Gap      what the missing batches have changed is told nowhere else: all that the server holds itself is
 *          given up, and the pools that it mounts with it, as a deletion there may have been among them.
 * Restart  a higher incarnation: what the server holds itself is given up; pools outlive it. Where its first
 *          batches are missing that is a gap besides.
 * Left     a server that deregisters, or is silent too long as a member, takes along what it holds itself. What
 *          it still sends in that life changes pools alone.
 * Pools    an object that any server has stored there goes when any server deletes it. Where a server whose
 *          batches were not all seen first names a pool, what the pool was thought to hold is given up.
 * Bounds   servers that a post may name for the first time: batches of further ones are dropped, and counted.
 * Never    throws, or tells of an object that it was not told of.
 */
import type { CacheBatch } from '../../../engines/lmcache/cache-batch.ts';
import type { CoordinatorMetrics } from '../../../metrics/coordinator-metrics.ts';
import type { SourceMetrics } from '../../../metrics/source-metrics.ts';
import type { ChangeCause } from '../../objects/object-change.ts';
import type { ObjectState } from '../../objects/object-state.ts';
import { mediumOf } from '../object-names.ts';
import type { Compartment } from './compartment.ts';
import { type Instance, Instances } from './instances.ts';
import type { ReachableChunks } from './reachable-chunks.ts';

/** Servers that one post may name for the first time: a server posts for itself. */
const MAX_NEWCOMERS = 512;
/** Of a server, none of which begins again: a post may be late. */
const MAX_PAST_LIVES = 16;

export interface CoordinatorViewOptions {
  readonly state: ObjectState;
  readonly metrics: SourceMetrics;
  readonly counts: CoordinatorMetrics;
  readonly nowMs: () => number;
  readonly maxHolders: number;
  /** Null where no chunks are placed. */
  readonly chunks: ReachableChunks | null;
  /** Silence after which a member has left. */
  readonly instanceTimeoutMs: number;
  readonly onLoss: (instanceId: string, lostBatches: number) => void;
}

/** As the coordinator answers. */
export interface TakenBatches {
  applied: number;
  duplicates: number;
  stale: number;
}

export class CoordinatorView {
  readonly instances: Instances;
  /** When batches were last found missing; null: never. */
  lastLossMs: number | null = null;
  /** Of this post. */
  #newcomers = 0;
  readonly #options: CoordinatorViewOptions;

  constructor(options: CoordinatorViewOptions) {
    this.#options = options;
    const { state, maxHolders, chunks } = options;
    this.instances = new Instances({
      state,
      maxHolders,
      watcher: chunks,
      onCrowdedOut: (instance) => {
        options.counts.crowdedOutInstances++;
        this.leave(instance.id, 'invalidated');
        this.instances.forget(instance);
      },
    });
  }

  /** The batches of one request. */
  take(batches: readonly CacheBatch[]): TakenBatches {
    this.#options.chunks?.beginPost();
    this.#newcomers = 0;
    const taken: TakenBatches = { applied: 0, duplicates: 0, stale: 0 };
    for (const batch of batches) {
      const outcome = this.#admit(batch);
      if (outcome === 'applied') this.#apply(batch);
      taken[outcome]++;
      this.#options.counts.batches[outcome]++;
    }
    return taken;
  }

  /** It has started, or does not know whether it is known: its clock may have been set back since. */
  noteRegistration(instanceId: string): void {
    this.noteMember(instanceId);
    this.#heard(instanceId).mayBeginAnew = true;
  }

  /** It is there, and will say so from now on. */
  noteMember(instanceId: string): void {
    const instance = this.#heard(instanceId);
    instance.isMember = true;
    if (!instance.hasLeft) return;
    instance.hasLeft = false;
    instance.mayBeginAnew = true;
  }

  /** In an orderly way: what it held itself is gone for certain. */
  leave(instanceId: string, cause: ChangeCause = 'event'): void {
    const instance = this.instances.find(instanceId);
    if (instance === null) return;
    this.#drop(instance, cause);
    this.#options.chunks?.noteLeft(instance);
    instance.own.clear();
    instance.isWhole = false;
    instance.hasLeft = true;
    instance.isMember = false;
  }

  /** Members that have been silent too long have left. */
  sweep(): void {
    const { nowMs, instanceTimeoutMs, counts } = this.#options;
    for (const { id, isMember, lastHeardMs } of this.instances.all()) {
      if (!isMember || nowMs() - lastHeardMs <= instanceTimeoutMs) continue;
      counts.expiredInstances++;
      this.leave(id, 'invalidated');
    }
  }

  #heard(instanceId: string): Instance {
    return this.instances.heard(instanceId, this.#options.nowMs());
  }

  #admit(batch: CacheBatch): keyof TakenBatches {
    const { instanceId, incarnation, seq } = batch;
    if (this.instances.find(instanceId) === null && ++this.#newcomers > MAX_NEWCOMERS) {
      this.#turnAway(batch);
      return 'stale';
    }
    const instance = this.#heard(instanceId);
    const isOther = incarnation !== instance.incarnation;
    if (instance.pastLives.includes(incarnation)) return 'stale';
    // Whoever has left may come again in any life: its clock may have been set back.
    if (isOther && instance.hasLeft) {
      instance.hasLeft = false;
      instance.mayBeginAnew = true;
    }
    if (incarnation > instance.incarnation || (isOther && instance.mayBeginAnew)) {
      this.#beginLife(instance, incarnation, seq);
    } else if (isOther) {
      return 'stale';
    } else if (seq <= instance.lastSeq) {
      return 'duplicates';
    } else if (seq > instance.lastSeq + 1) {
      this.#lose(instance, seq - instance.lastSeq - 1);
    }
    instance.mayBeginAnew = false;
    instance.lastSeq = seq;
    return 'applied';
  }

  /** What it says is lost, and its numbers will not show that where it does not come again. */
  #turnAway({ eventType, tier, backend, shared }: CacheBatch): void {
    this.#options.counts.crowdedOutInstances++;
    if (!shared || eventType !== 'delete') return;
    this.instances.pools.get(mediumOf(tier, backend))?.clear('invalidated');
  }

  #beginLife(instance: Instance, incarnation: number, seq: number): void {
    const isFirst = instance.incarnation < 0;
    instance.pastLives.push(instance.incarnation);
    if (instance.pastLives.length > MAX_PAST_LIVES) instance.pastLives.shift();
    instance.incarnation = incarnation;
    instance.revision = -1;
    instance.isWhole = seq === 1;
    // Of a server that is new here, earlier batches went before anybody followed.
    if (isFirst) return;
    this.#options.metrics.restarts++;
    instance.restarts++;
    this.#drop(instance, 'invalidated');
    if (seq > 1) this.#lose(instance, seq - 1);
  }

  #lose(instance: Instance, lostBatches: number): void {
    const { metrics, nowMs, onLoss } = this.#options;
    metrics.lostMessages += lostBatches;
    instance.lostBatches += lostBatches;
    instance.isWhole = false;
    this.lastLossMs = nowMs();
    this.#drop(instance, 'invalidated');
    for (const pool of instance.mounted) pool.clear('invalidated');
    onLoss(instance.id, lostBatches);
  }

  /** All that it holds itself. */
  #drop(instance: Instance, cause: ChangeCause): void {
    for (const compartment of instance.own.values()) compartment.clear(cause);
  }

  #apply(batch: CacheBatch): void {
    const { instanceId, eventType, tier, backend, shared, entries } = batch;
    const instance = this.instances.find(instanceId) as Instance;
    if (eventType === 'access') this.#options.counts.accessedKeys += entries.length;
    // What has left does not come back with what it says of itself at its end. An access of a server's own L1
    // names no backend, and nothing is made of it.
    if ((instance.hasLeft && !shared) || backend === '') return;
    const compartment = this.instances.compartmentOf(instance, tier, backend, shared);
    if (compartment === null) {
      this.instances.account.untracked += entries.length;
      return;
    }
    if (shared) this.#mount(instance, compartment);
    this.#options.chunks?.noteCompartment(instance, compartment);
    if (eventType === 'config') this.#declare(instance, batch, compartment);
    else if (eventType !== 'access') this.#applyEntries(batch, compartment);
  }

  /** What it has deleted there unseen, others may have told of. */
  #mount(instance: Instance, pool: Compartment): void {
    if (instance.mounted.has(pool)) return;
    instance.mounted.add(pool);
    if (!instance.isWhole) pool.clear('invalidated');
  }

  #applyEntries({ eventType, entries }: CacheBatch, compartment: Compartment): void {
    const { metrics, chunks } = this.#options;
    const { events } = metrics;
    const isStore = eventType === 'store';
    const counts = isStore ? events.stored : events.removed;
    for (const entry of entries) {
      counts.received++;
      const hasChanged = isStore ? compartment.store(entry) : compartment.delete(entry);
      counts[hasChanged ? 'applied' : 'repeated']++;
      // A key that found no room is not held.
      if (isStore && chunks !== null && compartment.holds(entry)) {
        chunks.noteStored(compartment, entry);
      }
    }
  }

  /** A declaration is one batch a compartment; what a newer one leaves out is not known any more. */
  #declare(instance: Instance, batch: CacheBatch, compartment: Compartment): void {
    const { capacityBytes, capacityRevision } = batch;
    this.#options.counts.declarations++;
    if (capacityRevision < instance.revision) return;
    if (capacityRevision > instance.revision) {
      for (const own of instance.own.values()) own.capacityBytes = null;
      instance.revision = capacityRevision;
    }
    compartment.capacityBytes = capacityBytes === 0 ? null : capacityBytes;
  }
}
