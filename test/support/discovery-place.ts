/** A directory of the file registry, with what workers and other publishers would write into it. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Bucket,
  fileNameOf,
  instanceKey,
  instancePrefix,
  type KvEndpoint,
  keyOfFileName,
} from '../../src/protocol/discovery-keys.ts';
import { parseLosslessJson } from '../../src/protocol/lossless-json.ts';
import { eventually } from './plane-collector.ts';

const ENDPOINT = { namespace: 'dynamo', component: 'backend', endpoint: 'generate' };

/** A source record as a router reads it. */
export interface ReadSource {
  readonly publisher_id: number;
  readonly metadata: {
    readonly worker: { readonly worker_id: bigint | number; readonly dp_rank: number };
    readonly recovery_target?: unknown;
  };
}

export class DiscoveryPlace {
  readonly directory: string = mkdtempSync(join(tmpdir(), 'kvrelay-place-'));
  readonly #alive = new Set<string>();
  readonly #toucher: NodeJS.Timeout;

  constructor() {
    this.#toucher = setInterval(() => {
      for (const path of this.#alive) utimesSync(path, new Date(), new Date());
    }, 2000);
  }

  get flags(): string[] {
    return ['--discovery', 'file', '--discovery-dir', this.directory];
  }

  /** A worker appears: the instance that serves the endpoint. */
  addWorker(workerId: bigint): () => void {
    const value = `{"type":"Endpoint","component":"backend","endpoint":"generate","namespace":"dynamo","instance_id":${workerId},"transport":{"tcp":"127.0.0.1:1/x"}}`;
    return this.add('v1/instances', instanceKey(ENDPOINT, workerId), value);
  }

  /** Writes a record and keeps it alive, until what is returned is called. */
  add(bucket: Bucket, key: string, value: string): () => void {
    mkdirSync(join(this.directory, bucket), { recursive: true });
    const path = join(this.directory, bucket, fileNameOf(key));
    const temporary = join(this.directory, bucket, '.tmp_0000000000000000');
    writeFileSync(temporary, value);
    renameSync(temporary, path);
    this.#alive.add(path);
    return () => {
      this.#alive.delete(path);
      rmSync(path, { force: true });
    };
  }

  /** Keys and values of a bucket. */
  records(bucket: Bucket): Map<string, string> {
    const folder = join(this.directory, bucket);
    const records = new Map<string, string>();
    for (const name of namesIn(folder)) {
      const key = keyOfFileName(name);
      if (key !== null) records.set(key, readFileSync(join(folder, name), 'utf8'));
    }
    return records;
  }

  /** The id of a worker that serves `endpoint`, once it has registered itself. */
  async instanceId(endpoint: KvEndpoint): Promise<bigint> {
    const prefix = instancePrefix(endpoint);
    const find = (): string | undefined =>
      [...this.records('v1/instances')].find(
        ([key, value]) => key.startsWith(prefix) && value !== '',
      )?.[0];
    if (!(await eventually(() => find() !== undefined))) throw new Error('there is no worker');
    return BigInt(`0x${find()?.slice(prefix.length)}`);
  }

  get sources(): ReadSource[] {
    const values = [...this.records('v1/event_sources').values()];
    return values.map((value) => parseLosslessJson(value) as ReadSource);
  }

  close(): void {
    clearInterval(this.#toucher);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
