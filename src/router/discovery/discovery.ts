/**
 * Discovery: the registry where routers find sources, and where a relay finds its worker.
 *
 * put       a record stands from then on: kept alive, written again where it vanished, and written later
 *           where the backend cannot be reached now, in the order of the puts.
 * watch     tells what stands under a prefix now, and again after each change; never what is half written.
 * Outages   never throw and never stop anything: they are told as faults, and `isAvailable` is false.
 */
import type { DiscoveryFault } from '../../metrics/discovery-metrics.ts';
import type { Bucket, DiscoveryKey } from '../../protocol/discovery-keys.ts';
import type { DiscoveryRecord } from '../../protocol/discovery-records.ts';

/** Values by their keys. */
export type Records = ReadonlyMap<string, string>;

export interface Discovery {
  readonly kind: 'none' | 'file' | 'etcd';
  /** False while the backend can be neither read nor written. */
  readonly isAvailable: boolean;
  /** True where everything that was put is written. */
  readonly isSettled: boolean;
  /** Rejects only where going on makes no sense, with what to do about it. */
  start(): Promise<void>;
  /** Resolves once it is written, or the attempt has failed and will be repeated. */
  put(record: DiscoveryRecord): Promise<void>;
  /** Takes a record of our own away. */
  withdraw(key: DiscoveryKey): Promise<void>;
  /** What stands under a prefix now, whether alive or left behind; empty where it cannot be read. */
  list(bucket: Bucket, prefix: string): Promise<Records>;
  /** Takes somebody's record away: a leftover of our own. */
  evict(key: DiscoveryKey): Promise<void>;
  /** Before `start()`; `onRecords` must not throw. */
  watch(bucket: Bucket, prefix: string, onRecords: (records: Records) => void): void;
  /** `listener` is called when all that was put is gone for good and has to be put anew. */
  onLost(listener: () => void): void;
  /** Ends everything; what has not been withdrawn goes too, where the backend allows it. */
  stop(): Promise<void>;
}

/** Called for each fault; the owner counts it and bounds what it says. */
export type FaultListener = (fault: DiscoveryFault, error: unknown) => void;

/** Most records under one prefix, and most bytes of one: more is not a deployment but a mistake. */
export const MAX_RECORDS = 4096;
export const MAX_RECORD_BYTES: number = 1 << 20;
/** Of all records that are looked at together: they are kept in memory. */
export const MAX_RECORDS_BYTES: number = 64 << 20;
