/**
 * FileDiscovery: records as files, in a directory that all processes of a host (or a volume) share.
 *
 * Layout   <directory>/v1/<bucket>/<encoded key>; missing folders are made.
 * Alive    each record is touched every KEEP_ALIVE_MS, and written again where it vanished: after a pause
 *          of more than 10 s any Dynamo process has deleted it.
 * Order    of the puts, also when written later; the last one is withdrawn first.
 * Source   ai-dynamo/dynamo 1.6.1, the file store of its discovery.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertInvariant, errorCode } from '../../errors.ts';
import { BUCKETS, type Bucket, type DiscoveryKey } from '../../protocol/discovery-keys.ts';
import type { DiscoveryRecord } from '../../protocol/discovery-records.ts';
import type { Discovery, FaultListener, Records } from './discovery.ts';
import { RecordFolder } from './record-folder.ts';
import { WatchedFolder } from './watched-folder.ts';

/** Records expire after 10 s: three touches may fail before one does. */
const KEEP_ALIVE_MS = 2500;

/** Where Dynamo's processes look without DYN_FILE_KV. */
const DEFAULT_FOLDER = 'dynamo_store_kv';

/** `given`: null for Dynamo's default below the temporary directory. */
export function registryDirectory(given: string | null): string {
  return given ?? join(tmpdir(), DEFAULT_FOLDER);
}

export interface FileDiscoveryOptions {
  readonly directory: string;
  readonly onFault: FaultListener;
}

interface KeptRecord extends DiscoveryRecord {
  isWritten: boolean;
}

export class FileDiscovery implements Discovery {
  readonly kind = 'file';
  readonly #onFault: FaultListener;
  readonly #folders: Readonly<Record<Bucket, RecordFolder>>;
  readonly #watched: Readonly<Record<Bucket, WatchedFolder>>;
  /** In the order of the puts. */
  #kept: KeptRecord[] = [];
  #keepAliveTimer: NodeJS.Timeout | undefined;
  /** Writes and touches one after the other, so that the order of the puts is that of the files. */
  #working: Promise<void> = Promise.resolve();
  #isWritable = true;

  constructor({ directory, onFault }: FileDiscoveryOptions) {
    this.#onFault = onFault;
    const folders = BUCKETS.map((bucket) => new RecordFolder(join(directory, bucket), onFault));
    this.#folders = byBucket((index) => folders[index]);
    const watched = folders.map((folder) => new WatchedFolder(folder, onFault));
    this.#watched = byBucket((index) => watched[index]);
  }

  get isAvailable(): boolean {
    return this.#isWritable && BUCKETS.every((bucket) => this.#watched[bucket].isReadable);
  }

  get isSettled(): boolean {
    return this.#kept.every(({ isWritten }) => isWritten);
  }

  async start(): Promise<void> {
    this.#keepAliveTimer = setInterval(
      () => void this.#enqueue(() => this.#keepAlive()),
      KEEP_ALIVE_MS,
    );
    for (const bucket of BUCKETS) await this.#watched[bucket].start();
  }

  async put(record: DiscoveryRecord): Promise<void> {
    this.#kept.push({ ...record, isWritten: false });
    await this.#enqueue(() => this.#keepAlive());
  }

  async withdraw({ bucket, key }: DiscoveryKey): Promise<void> {
    await this.#enqueue(async () => {
      this.#kept = this.#kept.filter((one) => one.bucket !== bucket || one.key !== key);
      await this.#remove({ bucket, key });
    });
  }

  async list(bucket: Bucket, prefix: string): Promise<Records> {
    try {
      const records = await this.#folders[bucket].read([prefix]);
      return new Map([...records].map(([key, { value }]) => [key, value]));
    } catch (error) {
      // Nobody has written there yet.
      if (errorCode(error) !== 'ENOENT') this.#onFault('read', error);
      return new Map();
    }
  }

  async evict(record: DiscoveryKey): Promise<void> {
    await this.#enqueue(() => this.#remove(record));
  }

  watch(bucket: Bucket, prefix: string, onRecords: (records: Records) => void): void {
    this.#watched[bucket].add(prefix, onRecords);
  }

  /** A file that vanished is written again; nothing is ever lost for good. */
  onLost(): void {}

  async stop(): Promise<void> {
    clearInterval(this.#keepAliveTimer);
    await Promise.all(BUCKETS.map((bucket) => this.#watched[bucket].stop()));
    for (const record of [...this.#kept].reverse()) await this.withdraw(record);
  }

  /** Stops at the first record that cannot be written: those behind it must not stand before it. */
  async #keepAlive(): Promise<void> {
    for (const record of this.#kept) {
      const folder = this.#folders[record.bucket];
      try {
        if (!record.isWritten || !(await folder.touch(record.key))) {
          await folder.write(record.key, record.value);
        }
        record.isWritten = true;
        this.#isWritable = true;
      } catch (error) {
        record.isWritten = false;
        this.#isWritable = false;
        this.#onFault('write', error);
        return;
      }
    }
  }

  async #remove({ bucket, key }: DiscoveryKey): Promise<void> {
    try {
      await this.#folders[bucket].remove(key);
    } catch (error) {
      this.#onFault('write', error);
    }
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#working = this.#working.then(work);
    return this.#working;
  }
}

function byBucket<Value>(valueAt: (index: number) => Value | undefined): Record<Bucket, Value> {
  const entries = BUCKETS.map((bucket, index) => {
    const value = valueAt(index);
    assertInvariant(value !== undefined, `nothing for ${bucket}`);
    return [bucket, value] as const;
  });
  return Object.fromEntries(entries) as Record<Bucket, Value>;
}
