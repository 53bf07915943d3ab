/**
 * SimulatedRegistry: where sources are announced; it outlives relay processes, whose records expire later.
 *
 * Watchers  are told what stands, somewhat after each change, and not of each step in between.
 */
import type { Bucket, DiscoveryKey } from '../../src/protocol/discovery-keys.ts';
import type { DiscoveryRecord } from '../../src/protocol/discovery-records.ts';
import type { Discovery, Records } from '../../src/router/discovery/discovery.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

interface Entry {
  readonly value: string;
  readonly owner: RegistryClient;
}

interface Watcher {
  readonly bucket: Bucket;
  readonly prefix: string;
  readonly onRecords: (records: Records) => void;
  isClosed: boolean;
}

/** A record that nobody touches is taken for dead after so long. */
const EXPIRY_MS = [10_000, 13_300] as const;

export class SimulatedRegistry {
  readonly clock: VirtualClock;
  readonly #random: Random;
  readonly #buckets = new Map<Bucket, Map<string, Entry>>();
  readonly #watchers = new Set<Watcher>();

  constructor(clock: VirtualClock, random: Random) {
    this.clock = clock;
    this.#random = random;
  }

  client(): RegistryClient {
    return new RegistryClient(this);
  }

  /** Returns what ends it. */
  watch(bucket: Bucket, prefix: string, onRecords: (records: Records) => void): () => void {
    const watcher: Watcher = { bucket, prefix, onRecords, isClosed: false };
    this.#watchers.add(watcher);
    this.#tell(watcher);
    return () => {
      watcher.isClosed = true;
      this.#watchers.delete(watcher);
    };
  }

  list(bucket: Bucket, prefix: string): Records {
    const entries = [...(this.#buckets.get(bucket) ?? [])];
    return new Map(
      entries.flatMap(([key, { value }]) => (key.startsWith(prefix) ? [[key, value]] : [])),
    );
  }

  put({ bucket, key, value }: DiscoveryRecord, owner: RegistryClient): void {
    const entries = this.#buckets.get(bucket) ?? new Map<string, Entry>();
    this.#buckets.set(bucket, entries);
    entries.set(key, { value, owner });
    this.#tellAll(bucket);
  }

  remove({ bucket, key }: DiscoveryKey): void {
    if (this.#buckets.get(bucket)?.delete(key) === true) this.#tellAll(bucket);
  }

  /** Source records vanish, and are written again where their owner lives. */
  loseSources(absentMs: number): void {
    for (const [key, entry] of this.#buckets.get('v1/event_sources') ?? []) {
      const place = { bucket: 'v1/event_sources', key } as const;
      this.remove(place);
      this.clock.schedule(() => entry.owner.restore({ ...place, value: entry.value }), absentMs);
    }
  }

  expire(owner: RegistryClient): void {
    this.clock.schedule(
      () => {
        for (const [bucket, entries] of this.#buckets) {
          for (const [key, entry] of entries)
            if (entry.owner === owner) this.remove({ bucket, key });
        }
      },
      this.#random.between(...EXPIRY_MS),
    );
  }

  /** A step of the backend, which takes a moment. */
  async step(): Promise<void> {
    await new Promise<void>((resolve) => this.#later(resolve));
  }

  #tellAll(bucket: Bucket): void {
    for (const watcher of this.#watchers) if (watcher.bucket === bucket) this.#tell(watcher);
  }

  #tell(watcher: Watcher): void {
    this.#later(() => {
      if (!watcher.isClosed) watcher.onRecords(this.list(watcher.bucket, watcher.prefix));
    });
  }

  #later(act: () => void): void {
    this.clock.schedule(
      () => {
        this.clock.followOn();
        act();
      },
      this.#random.pick([0.1, 1, 5]),
    );
  }
}

/** A relay process's access to it. */
export class RegistryClient implements Discovery {
  readonly kind = 'file';
  readonly isAvailable = true;
  readonly isSettled = true;
  readonly #registry: SimulatedRegistry;
  readonly #wanted = new Set<string>();
  readonly #watches: (() => void)[] = [];
  readonly #ends: (() => void)[] = [];
  #isDead = false;

  constructor(registry: SimulatedRegistry) {
    this.#registry = registry;
  }

  async start(): Promise<void> {
    for (const begin of this.#watches) begin();
  }

  async put(record: DiscoveryRecord): Promise<void> {
    this.#wanted.add(record.key);
    await this.#registry.step();
    if (!this.#isDead) this.#registry.put(record, this);
  }

  async withdraw(key: DiscoveryKey): Promise<void> {
    this.#wanted.delete(key.key);
    await this.evict(key);
  }

  async list(bucket: Bucket, prefix: string): Promise<Records> {
    await this.#registry.step();
    return this.#registry.list(bucket, prefix);
  }

  async evict(key: DiscoveryKey): Promise<void> {
    await this.#registry.step();
    if (!this.#isDead) this.#registry.remove(key);
  }

  watch(bucket: Bucket, prefix: string, onRecords: (records: Records) => void): void {
    this.#watches.push(() => {
      this.#ends.push(this.#registry.watch(bucket, prefix, onRecords));
    });
  }

  onLost(): void {}

  async stop(): Promise<void> {}

  restore(record: DiscoveryRecord): void {
    if (!this.#isDead && this.#wanted.has(record.key)) this.#registry.put(record, this);
  }

  kill(): void {
    this.#isDead = true;
    for (const end of this.#ends) end();
    this.#registry.expire(this);
  }
}
