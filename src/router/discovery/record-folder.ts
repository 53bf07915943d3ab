/**
 * RecordFolder: one bucket of the file backend, a folder with one file a record.
 *
 * Name     exactly the encoded key: a record under another name could never be deleted by a router.
 * Write    to `.tmp_<16 hex>` beside it, then renamed: no reader sees half of it.
 * Alive    a file whose mtime is younger than TTL_MS; older ones are deleted by any Dynamo process.
 * Bounds   names looked at, records read, bytes of one and of all.
 * Source   ai-dynamo/dynamo 1.6.1, the file store of its discovery.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import {
  mkdir,
  open,
  opendir,
  rename,
  rm,
  stat,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../errors.ts';
import { fileNameOf, keyOfFileName } from '../../protocol/discovery-keys.ts';
import {
  type FaultListener,
  MAX_RECORD_BYTES,
  MAX_RECORDS,
  MAX_RECORDS_BYTES,
} from './discovery.ts';

/** After this long without a touch a record counts as left behind. */
const TTL_MS = 10_000;

/** Most names of a folder that are looked at. */
const MAX_NAMES = 65_536;

export interface FileRecord {
  readonly value: string;
  readonly isAlive: boolean;
}

interface KnownFile {
  readonly inode: number;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly value: string;
}

export class RecordFolder {
  readonly path: string;
  readonly #onFault: FaultListener;
  /** Read before, by file name: a file that has not changed is not read again. */
  #known = new Map<string, KnownFile>();

  constructor(path: string, onFault: FaultListener) {
    this.path = path;
    this.#onFault = onFault;
  }

  async create(): Promise<void> {
    await mkdir(this.path, { recursive: true });
  }

  /** Rejects where it cannot be written. */
  async write(key: string, value: string): Promise<void> {
    await this.create();
    const temporary = join(this.path, `.tmp_${randomBytes(8).toString('hex')}`);
    try {
      await writeFile(temporary, value);
      await rename(temporary, this.#pathOf(key));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** Keeps a record alive; false where its file is gone. */
  async touch(key: string): Promise<boolean> {
    const now = new Date();
    try {
      await utimes(this.#pathOf(key), now, now);
      return true;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return false;
      throw error;
    }
  }

  async remove(key: string): Promise<void> {
    try {
      await unlink(this.#pathOf(key));
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error;
    }
  }

  /** The records whose keys begin with one of `prefixes`, by key. Rejects where the folder cannot be read. */
  async read(prefixes: readonly string[]): Promise<Map<string, FileRecord>> {
    const records = new Map<string, FileRecord>();
    const known = new Map<string, KnownFile>();
    let bytes = 0;
    for (const name of await this.#names(prefixes)) {
      const key = keyOfFileName(name);
      const file = key === null ? null : await this.#readFile(name);
      if (key === null || file === null) continue;
      bytes += file.bytes;
      if (bytes > MAX_RECORDS_BYTES) {
        this.#tellTooMany();
        break;
      }
      known.set(name, file);
      const isAlive = Date.now() - file.modifiedMs <= TTL_MS;
      records.set(key, { value: file.value, isAlive });
    }
    this.#known = known;
    return records;
  }

  async #names(prefixes: readonly string[]): Promise<string[]> {
    const encoded = prefixes.map(fileNameOf);
    const names: string[] = [];
    let seen = 0;
    for await (const { name } of await opendir(this.path)) {
      if (++seen > MAX_NAMES || names.length === MAX_RECORDS) {
        this.#tellTooMany();
        break;
      }
      if (encoded.some((prefix) => name.startsWith(prefix))) names.push(name);
    }
    return names;
  }

  /** Null where it is gone by now, or cannot be used. */
  async #readFile(name: string): Promise<KnownFile | null> {
    const path = join(this.path, name);
    try {
      const file = await stat(path);
      // Opening a pipe waits for its writer, and that wait even outlives the process's exit.
      if (!file.isFile()) throw new Error(`${path} is no regular file`);
      const { ino: inode, size: bytes, mtimeMs: modifiedMs } = file;
      const known = this.#known.get(name);
      if (known?.inode === inode && known.bytes === bytes && known.modifiedMs === modifiedMs) {
        return known;
      }
      const value = await this.#readBounded(path);
      return value === null ? null : { inode, bytes, modifiedMs, value };
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') this.#onFault('read', error);
      return null;
    }
  }

  /** Null where it holds more than a record may, whatever its size was said to be. */
  async #readBounded(path: string): Promise<string | null> {
    // Not to wait where a pipe has taken the file's place since it was looked at.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const buffer = Buffer.allocUnsafe(MAX_RECORD_BYTES + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) break;
      }
      if (length <= MAX_RECORD_BYTES) return buffer.toString('utf8', 0, length);
      this.#onFault('too_large', new Error(`${path} has more than ${MAX_RECORD_BYTES} bytes`));
      return null;
    } finally {
      await file.close();
    }
  }

  #tellTooMany(): void {
    this.#onFault('too_many', new Error(`more than can be read in ${this.path}`));
  }

  #pathOf(key: string): string {
    return join(this.path, fileNameOf(key));
  }
}
