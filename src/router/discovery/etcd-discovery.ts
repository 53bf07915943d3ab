/**
 * EtcdDiscovery: records as keys in etcd, under one lease of this process.
 *
 * Keys     `<bucket>/<key>`, not escaped again; the values are the same JSON as in files.
 * Lease    renewed every third of its time, given back at the stop: the keys then vanish at once. When it
 *          is lost, all records are gone with it, and their owners are told to begin anew.
 * Outage   what was to be written or deleted meanwhile is, once it is over, deletions first.
 * Watch    a whole prefix is read again at each change of it, and with every renewal besides.
 * Bounds   time of each call, records of a prefix, bytes of one.
 * Source   ai-dynamo/dynamo 1.6.1, the etcd store of its discovery.
 */
import type { Etcd3, Lease } from 'etcd3';
import type { DiscoveryFault } from '../../metrics/discovery-metrics.ts';
import type { Bucket, DiscoveryKey } from '../../protocol/discovery-keys.ts';
import type { DiscoveryRecord } from '../../protocol/discovery-records.ts';
import { type Discovery, type FaultListener, MAX_RECORDS, type Records } from './discovery.ts';
import { connectEtcd, deadline, type EtcdAccess, within } from './etcd-client.ts';
import { EtcdPrefix, readPrefix } from './etcd-prefix.ts';

const RENEWALS_A_LEASE = 3;
/** After a failure the next attempt comes sooner than the next renewal. */
const RETRY_MS = 1000;

export interface EtcdDiscoveryOptions {
  readonly access: EtcdAccess;
  /** Seconds that the records outlive a relay that has died. */
  readonly leaseTtlSeconds: number;
  readonly onFault: FaultListener;
}

interface KeptRecord extends DiscoveryRecord {
  isWritten: boolean;
}

export class EtcdDiscovery implements Discovery {
  readonly kind = 'etcd';
  readonly #options: EtcdDiscoveryOptions;
  readonly #prefixes: EtcdPrefix[] = [];
  #client: Etcd3 | null = null;
  #lease: Lease | null = null;
  /** In the order of the puts. */
  #kept: KeptRecord[] = [];
  /** Paths that are still to be deleted, oldest first. */
  readonly #unwanted = new Set<string>();
  #onLost: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  /** One call after the other, so that the order of the puts is that of the keys. */
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;
  isAvailable = false;

  constructor(options: EtcdDiscoveryOptions) {
    this.#options = options;
  }

  get isSettled(): boolean {
    return this.#unwanted.size === 0 && this.#kept.every(({ isWritten }) => isWritten);
  }

  /** Rejects only where the client is not installed; a server may come later. */
  async start(): Promise<void> {
    const client = await connectEtcd(this.#options.access);
    this.#client = client;
    for (const prefix of this.#prefixes) prefix.follow(client);
    void this.#renewAndRepeat();
  }

  onLost(listener: () => void): void {
    this.#onLost = listener;
  }

  async put(record: DiscoveryRecord): Promise<void> {
    this.#kept.push({ ...record, isWritten: false });
    await this.#enqueue(() => this.#write());
  }

  async withdraw(record: DiscoveryKey): Promise<void> {
    await this.#enqueue(async () => {
      this.#kept = this.#kept.filter(
        ({ bucket, key }) => pathOf({ bucket, key }) !== pathOf(record),
      );
      await this.#delete(record);
    });
  }

  async list(bucket: Bucket, prefix: string): Promise<Records> {
    try {
      if (this.#client === null) return new Map();
      return await readPrefix(this.#client, bucket, prefix, this.#options.onFault);
    } catch (error) {
      this.#fail('read', error);
      return new Map();
    }
  }

  async evict(record: DiscoveryKey): Promise<void> {
    await this.#enqueue(() => this.#delete(record));
  }

  watch(bucket: Bucket, prefix: string, onRecords: (records: Records) => void): void {
    const watched = new EtcdPrefix({
      bucket,
      prefix,
      onRecords: (records) => {
        this.#rewriteVanished(watched, records);
        onRecords(records);
      },
      onFault: (fault, error) => this.#fail(fault, error),
    });
    this.#prefixes.push(watched);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    for (const prefix of this.#prefixes) prefix.stop();
    await this.#working;
    try {
      if (this.#lease !== null) await within(this.#lease.revoke(deadline()));
    } catch {
      // Without an answer the lease runs out by itself.
    }
    this.#client?.close();
  }

  async #renewAndRepeat(): Promise<void> {
    await this.#enqueue(() => this.#renew());
    for (const prefix of this.#prefixes) prefix.wake();
    if (this.#isStopped) return;
    const renewalMs = (this.#options.leaseTtlSeconds * 1000) / RENEWALS_A_LEASE;
    const waitMs = this.isAvailable ? renewalMs : Math.min(RETRY_MS, renewalMs);
    this.#renewIn(waitMs);
  }

  #renewIn(waitMs: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#renewAndRepeat(), waitMs);
  }

  async #renew(): Promise<void> {
    try {
      if (this.#lease === null) await this.#grant();
      else await within(this.#lease.keepaliveOnce(deadline()));
      this.isAvailable = true;
    } catch (error) {
      if (this.#lease?.revoked()) this.#lose(error);
      else this.#fail('write', error);
      return;
    }
    await this.#write();
  }

  async #grant(): Promise<void> {
    const { leaseTtlSeconds } = this.#options;
    const lease = this.#client?.lease(leaseTtlSeconds, { autoKeepAlive: false, ...deadline() });
    if (lease === undefined) return;
    await within(lease.grant());
    this.#lease = lease;
  }

  /** What was written is gone; nothing of it is written again by itself. */
  #lose(error: unknown): void {
    this.#options.onFault('lease_lost', error);
    this.#lease = null;
    this.#kept = [];
    this.isAvailable = false;
    this.#onLost();
    this.#renewIn(0);
  }

  /** What has to go, then what has to stand. */
  async #write(): Promise<void> {
    if (await this.#deleteUnwanted()) await this.#writeKept();
  }

  /** Stops at the first record that cannot be written: those behind it must not stand before it. */
  async #writeKept(): Promise<void> {
    const lease = this.#lease;
    if (lease === null) return;
    for (const record of this.#kept) {
      if (record.isWritten) continue;
      try {
        await within(lease.put(pathOf(record)).value(record.value).exec());
        record.isWritten = true;
      } catch (error) {
        if (lease.revoked()) this.#lose(error);
        else this.#fail('write', error);
        return;
      }
    }
  }

  /** Where etcd does not answer it is done later: a lease that outlives the outage keeps the record. */
  async #delete(record: DiscoveryKey): Promise<void> {
    this.#unwanted.add(pathOf(record));
    const [oldest] = this.#unwanted;
    if (oldest !== undefined && this.#unwanted.size > MAX_RECORDS) this.#unwanted.delete(oldest);
    await this.#deleteUnwanted();
  }

  /** False where some of it still stands. */
  async #deleteUnwanted(): Promise<boolean> {
    for (const path of this.#unwanted) {
      if (this.#client === null) return false;
      try {
        await within(this.#client.delete().key(path).exec());
        this.#unwanted.delete(path);
      } catch (error) {
        this.#fail('write', error);
        return false;
      }
    }
    return true;
  }

  /** Somebody has deleted what we keep. */
  #rewriteVanished({ bucket, prefix }: EtcdPrefix, records: Records): void {
    const vanished = this.#kept.filter(
      (record) =>
        record.isWritten &&
        record.bucket === bucket &&
        record.key.startsWith(prefix) &&
        !records.has(record.key),
    );
    for (const record of vanished) record.isWritten = false;
    if (vanished.length > 0) void this.#enqueue(() => this.#write());
  }

  #fail(fault: DiscoveryFault, error: unknown): void {
    if (this.#isStopped) return;
    if (fault === 'read' || fault === 'write') this.isAvailable = false;
    this.#options.onFault(fault, error);
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#working = this.#working.then(work);
    return this.#working;
  }
}

function pathOf({ bucket, key }: DiscoveryKey): string {
  return `${bucket}/${key}`;
}
