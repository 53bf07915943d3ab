/**
 * Instances: the MP servers that report, each with how far its numbers have come and what it holds itself,
 * and the pools that several of them mount.
 *
 * Bounds   servers, and media. Where there are too many servers the one that was silent longest goes.
 */
import type { ObjectState } from '../../objects/object-state.ts';
import { type LmcacheTier, mediumOf } from '../object-names.ts';
import { Compartment, type CompartmentWatcher, type HolderAccount } from './compartment.ts';

/** Of the 16 that the state has bits for: other stores need some. */
const MAX_MEDIA = 12;
/** Servers that are followed at a time. */
export const MAX_INSTANCES = 1024;

/** Of a holder's name, over all; one may have several thousand, a usual one some hundred. */
const MAX_MEAN_KEY_BYTES = 256;
const MIN_KEY_BYTES = 1 << 20;

export interface Instance {
  readonly id: string;
  incarnation: number;
  /** Incarnations before it, as far as they were seen. */
  readonly pastLives: number[];
  /** Of the last batch; 0 before the first. */
  lastSeq: number;
  /** All of it was seen since this life began: what is shown is all that it holds. */
  isWhole: boolean;
  /** It has left: what it still says of itself is about what goes with it. */
  hasLeft: boolean;
  /** Its next batch may be of an older life. */
  mayBeginAnew: boolean;
  /** It registers and sends heartbeats, so that silence means something. */
  isMember: boolean;
  lastHeardMs: number;
  /** Of the last declaration of capacities. */
  revision: number;
  lostBatches: number;
  restarts: number;
  /** Its own, by medium. */
  readonly own: Map<string, Compartment>;
  /** Pools that it has named. */
  readonly mounted: Set<Compartment>;
}

export interface InstancesOptions {
  readonly state: ObjectState;
  readonly maxHolders: number;
  /** Of all compartments. */
  readonly watcher: CompartmentWatcher | null;
  /** It goes before a new one comes, as there are too many. */
  readonly onCrowdedOut: (instance: Instance) => void;
}

export class Instances {
  readonly account: HolderAccount;
  readonly pools: Map<string, Compartment> = new Map();
  readonly #state: ObjectState;
  readonly #watcher: CompartmentWatcher | null;
  readonly #all = new Map<string, Instance>();
  /** The same, the one that was silent longest first: a post may name thousands that find no room. */
  readonly #bySilence = new Set<Instance>();
  /** Tiers with their backends, of all that were ever named. */
  readonly #media = new Set<string>();
  readonly #onCrowdedOut: InstancesOptions['onCrowdedOut'];

  constructor({ state, maxHolders, watcher, onCrowdedOut }: InstancesOptions) {
    this.#state = state;
    const maxKeyBytes = Math.max(MIN_KEY_BYTES, maxHolders * MAX_MEAN_KEY_BYTES);
    this.account = { maxHolders, maxKeyBytes, holders: 0, keyBytes: 0, untracked: 0 };
    this.#watcher = watcher;
    this.#onCrowdedOut = onCrowdedOut;
  }

  get size(): number {
    return this.#all.size;
  }

  all(): Iterable<Instance> {
    return this.#all.values();
  }

  find(id: string): Instance | null {
    return this.#all.get(id) ?? null;
  }

  /** It says something now, maybe for the first time. */
  heard(id: string, nowMs: number): Instance {
    const instance = this.#all.get(id) ?? this.#add(id, nowMs);
    instance.lastHeardMs = nowMs;
    this.#bySilence.delete(instance);
    this.#bySilence.add(instance);
    return instance;
  }

  forget(instance: Instance): void {
    this.#all.delete(instance.id);
    this.#bySilence.delete(instance);
  }

  /** Null where there is no room for a further medium. */
  compartmentOf(
    instance: Instance,
    tier: LmcacheTier,
    backend: string,
    shared: boolean,
  ): Compartment | null {
    const medium = mediumOf(tier, backend);
    const place = shared ? this.pools : instance.own;
    const known = place.get(medium);
    if (known !== undefined) return known;
    if (!this.#media.has(medium) && this.#media.size >= MAX_MEDIA) return null;
    if (this.#state.media.bitOf(medium) === 0) return null;
    this.#media.add(medium);
    const compartment = new Compartment({
      watcher: this.#watcher,
      instanceId: shared ? null : instance.id,
      tier,
      backend,
      state: this.#state,
      account: this.account,
    });
    place.set(medium, compartment);
    return compartment;
  }

  #add(id: string, nowMs: number): Instance {
    if (this.#all.size >= MAX_INSTANCES) this.#makeRoom();
    const instance: Instance = {
      id,
      incarnation: -1,
      pastLives: [],
      lastSeq: 0,
      isWhole: false,
      hasLeft: false,
      mayBeginAnew: false,
      isMember: false,
      lastHeardMs: nowMs,
      revision: -1,
      lostBatches: 0,
      restarts: 0,
      own: new Map(),
      mounted: new Set(),
    };
    this.#all.set(id, instance);
    return instance;
  }

  #makeRoom(): void {
    const [oldest] = this.#bySilence;
    if (oldest !== undefined) this.#onCrowdedOut(oldest);
  }
}
