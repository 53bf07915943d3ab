/**
 * EtcdPrefix: what stands under one prefix in etcd, told again whenever it changes.
 *
 * A change is only a reason to read the whole prefix again: nothing has to be right about missed ones.
 * Bounds   records, bytes of one.
 */
import type { Etcd3 } from 'etcd3';
import type { Bucket } from '../../protocol/discovery-keys.ts';
import { type FaultListener, MAX_RECORD_BYTES, MAX_RECORDS, type Records } from './discovery.ts';
import { within } from './etcd-client.ts';

/** Changes that come together are read once. */
const SETTLE_MS = 10;

export interface EtcdPrefixOptions {
  readonly bucket: Bucket;
  readonly prefix: string;
  readonly onRecords: (records: Records) => void;
  readonly onFault: FaultListener;
}

export class EtcdPrefix {
  readonly bucket: Bucket;
  readonly prefix: string;
  readonly #options: EtcdPrefixOptions;
  #client: Etcd3 | null = null;
  #settleTimer: NodeJS.Timeout | undefined;

  constructor(options: EtcdPrefixOptions) {
    this.bucket = options.bucket;
    this.prefix = options.prefix;
    this.#options = options;
  }

  follow(client: Etcd3): void {
    const { onFault } = this.#options;
    this.#client = client;
    const watcher = client.watch().prefix(`${this.bucket}/${this.prefix}`).watcher();
    watcher.on('connected', () => this.wake());
    watcher.on('data', () => this.wake());
    // It redials by itself in both cases.
    watcher.on('disconnected', (error) => onFault('watch', error));
    watcher.on('error', (error) => onFault('watch', error));
  }

  /** Reads and tells what stands now, soon. */
  wake(): void {
    if (this.#client === null) return;
    this.#settleTimer ??= setTimeout(() => {
      this.#settleTimer = undefined;
      void this.#tell();
    }, SETTLE_MS);
  }

  stop(): void {
    clearTimeout(this.#settleTimer);
    this.#client = null;
  }

  async #tell(): Promise<void> {
    const { onRecords, onFault } = this.#options;
    if (this.#client === null) return;
    try {
      const records = await readPrefix(this.#client, this.bucket, this.prefix, onFault);
      if (this.#client !== null) onRecords(records);
    } catch (error) {
      onFault('read', error);
    }
  }
}

/** Rejects where etcd does not answer. */
export async function readPrefix(
  client: Etcd3,
  bucket: Bucket,
  prefix: string,
  onFault: FaultListener,
): Promise<Records> {
  const path = `${bucket}/${prefix}`;
  const range = client
    .getAll()
    .prefix(path)
    .limit(MAX_RECORDS + 1);
  const found = Object.entries(await within(range.strings()));
  if (found.length > MAX_RECORDS) {
    onFault('too_many', new Error(`more than can be read below ${path}`));
  }
  const records = new Map<string, string>();
  for (const [key, value] of found.slice(0, MAX_RECORDS)) {
    if (value.length <= MAX_RECORD_BYTES) records.set(key.slice(bucket.length + 1), value);
    else onFault('too_large', new Error(`${key} is larger than a record may be`));
  }
  return records;
}
