/** The discovery registry as `kvrelay doctor` reads it: nothing is written, and nothing is made. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Etcd3 } from 'etcd3';
import type { WorkerConfig } from '../../config/worker-config.ts';
import { errorCode, messageOf } from '../../errors.ts';
import { BUCKETS, type Bucket } from '../../protocol/discovery-keys.ts';
import { connectEtcd } from '../../router/discovery/etcd-client.ts';
import { readPrefix } from '../../router/discovery/etcd-prefix.ts';
import { registryDirectory } from '../../router/discovery/file-discovery.ts';
import { type FileRecord, RecordFolder } from '../../router/discovery/record-folder.ts';
import { type Check, fail, ok } from './check.ts';

export type SeenRecords = ReadonlyMap<string, FileRecord>;

export interface RegistryView {
  readonly backend: Check;
  /** By bucket; a file registry lacks the buckets that nobody has opened yet. Null: it cannot be read. */
  readonly records: ReadonlyMap<Bucket, SeenRecords> | null;
}

export async function readRegistry(config: WorkerConfig): Promise<RegistryView> {
  return config.discovery === 'etcd' ? readEtcd(config) : readDirectory(config);
}

async function readDirectory(config: WorkerConfig): Promise<RegistryView> {
  const name = 'discovery_backend';
  const directory = registryDirectory(config.discoveryDir);
  const folders = [directory, ...BUCKETS.map((bucket) => join(directory, bucket))];
  for (const folder of folders) {
    const problem = await folderProblem(folder);
    if (problem === null) continue;
    const remedy =
      'Give the directory that worker and routers have in DYN_FILE_KV, writable to this user';
    return { backend: fail(name, `${folder} ${problem}`, remedy), records: null };
  }
  const records = new Map<Bucket, SeenRecords>();
  let problem: string | null = null;
  for (const bucket of BUCKETS) {
    const folder = new RecordFolder(join(directory, bucket), (_fault, error) => {
      problem = messageOf(error);
    });
    try {
      records.set(bucket, await folder.read(['']));
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') problem = messageOf(error);
    }
  }
  if (problem === null) {
    const isThere = await stat(directory).then(
      () => true,
      () => false,
    );
    const how = isThere ? 'can be written' : 'is not there yet and can be made';
    return { backend: ok(name, `${directory} ${how}`), records };
  }
  const remedy = 'Take away what does not belong there, or correct its permissions';
  return { backend: fail(name, `${directory}: ${String(problem)}`, remedy), records };
}

/** Why nothing can be written there; what does not exist yet can be made in its parent, or not. */
async function folderProblem(folder: string): Promise<string | null> {
  try {
    if (!(await stat(folder)).isDirectory()) return 'is no directory';
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' && dirname(folder) !== folder) return folderProblem(dirname(folder));
    if (code === 'EACCES') return 'cannot be read and written by this user';
    return code === 'EROFS' ? 'is on a read-only file system' : `cannot be used (${code})`;
  }
}

async function readEtcd(config: WorkerConfig): Promise<RegistryView> {
  const name = 'discovery_backend';
  const servers = config.etcdEndpoints.join(', ');
  let client: Etcd3 | null = null;
  try {
    client = await connectEtcd(config);
    const records = new Map<Bucket, SeenRecords>();
    for (const bucket of BUCKETS) {
      const found = await readPrefix(client, bucket, '', () => undefined);
      const alive = [...found].map(([key, value]) => [key, { value, isAlive: true }] as const);
      records.set(bucket, new Map(alive));
    }
    return { backend: ok(name, `etcd answers at ${servers}`), records };
  } catch (error) {
    const remedy =
      'Start etcd and give --etcd-endpoints its address; account and TLS come from ETCD_AUTH_*';
    return {
      backend: fail(name, `etcd at ${servers}: ${messageOf(error)}`, remedy),
      records: null,
    };
  } finally {
    client?.close();
  }
}
