/**
 * WatchedFolder: what stands in a bucket of the file backend, told again whenever it changes.
 *
 * Wakes    by inotify, and each RESCAN_MS without it: a record that is no longer touched dies unseen,
 *          and some file systems tell nothing.
 * Survives a folder that is deleted and made again.
 */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { errorCode } from '../../errors.ts';
import type { FaultListener, Records } from './discovery.ts';
import type { FileRecord, RecordFolder } from './record-folder.ts';

const RESCAN_MS = 1000;

/** Changes that come together are read once. */
const SETTLE_MS = 10;

interface Watcher {
  readonly prefix: string;
  readonly onRecords: (records: Records) => void;
  last: Records | null;
}

export class WatchedFolder {
  readonly #folder: RecordFolder;
  readonly #onFault: FaultListener;
  readonly #watchers: Watcher[] = [];
  #inotify: FSWatcher | null = null;
  #watchedInode = 0;
  #settleTimer: NodeJS.Timeout | undefined;
  #rescanTimer: NodeJS.Timeout | undefined;
  #scanning: Promise<void> | null = null;
  #mustScanAgain = false;
  #isStopped = false;
  isReadable = false;

  constructor(folder: RecordFolder, onFault: FaultListener) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  add(prefix: string, onRecords: (records: Records) => void): void {
    this.#watchers.push({ prefix, onRecords, last: null });
  }

  /** Resolves once what stands has been told for the first time. */
  async start(): Promise<void> {
    if (this.#watchers.length === 0) {
      this.isReadable = true;
      return;
    }
    this.#rescanTimer = setInterval(() => void this.#scan(), RESCAN_MS);
    await this.#scan();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#rescanTimer);
    clearTimeout(this.#settleTimer);
    this.#inotify?.close();
    await this.#scanning;
  }

  /** One scan at a time; one more where something changed meanwhile. */
  async #scan(): Promise<void> {
    if (this.#scanning !== null) {
      this.#mustScanAgain = true;
      await this.#scanning;
      return;
    }
    this.#scanning = this.#scanUntilQuiet();
    await this.#scanning;
    this.#scanning = null;
    if (this.#mustScanAgain && !this.#isStopped) this.#wake();
  }

  async #scanUntilQuiet(): Promise<void> {
    do {
      this.#mustScanAgain = false;
      try {
        await this.#follow();
        const records = await this.#folder.read(this.#watchers.map(({ prefix }) => prefix));
        this.isReadable = true;
        if (!this.#isStopped) for (const watcher of this.#watchers) tell(watcher, records);
      } catch (error) {
        this.isReadable = false;
        this.#onFault('read', error);
      }
    } while (this.#mustScanAgain && !this.#isStopped);
  }

  /** Sees to it that inotify looks at the folder that stands there now. */
  async #follow(): Promise<void> {
    await this.#folder.create();
    const { ino } = await stat(this.#folder.path);
    if (this.#isStopped || (this.#inotify !== null && ino === this.#watchedInode)) return;
    this.#inotify?.close();
    this.#inotify = null;
    try {
      const inotify = watch(this.#folder.path, { persistent: false }, () => this.#wake());
      inotify.on('error', (error) => {
        this.#onFault('watch', error);
        inotify.close();
        if (this.#inotify === inotify) this.#inotify = null;
      });
      this.#inotify = inotify;
      this.#watchedInode = ino;
    } catch (error) {
      // Without a watch to be had (ENOSPC, EMFILE) the rescan alone still notices everything.
      this.#onFault('watch', new Error(`no inotify watch (${errorCode(error)})`, { cause: error }));
    }
  }

  #wake(): void {
    if (this.#isStopped) return;
    this.#settleTimer ??= setTimeout(() => {
      this.#settleTimer = undefined;
      void this.#scan();
    }, SETTLE_MS);
  }
}

function tell(watcher: Watcher, all: ReadonlyMap<string, FileRecord>): void {
  const records = new Map<string, string>();
  for (const [key, { value, isAlive }] of all) {
    if (isAlive && key.startsWith(watcher.prefix)) records.set(key, value);
  }
  if (watcher.last !== null && areEqual(watcher.last, records)) return;
  watcher.last = records;
  watcher.onRecords(records);
}

function areEqual(some: Records, others: Records): boolean {
  if (some.size !== others.size) return false;
  return [...some].every(([key, value]) => others.get(key) === value);
}
