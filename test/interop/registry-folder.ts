/** The registry in files where stock Dynamo processes and a source of the test meet. */
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
import { onTestFinished } from 'vitest';
import { natsServerAvailable } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';
import { DYNAMO_PYTHON } from './dynamo-peers.ts';

const KEEP_ALIVE_MS = 2000;

/** With KVRELAY_REQUIRE_ALL=1 a missing Dynamo is an error, so that nothing is skipped unseen. */
export function hasDynamo(): boolean {
  if (DYNAMO_PYTHON !== '' && natsServerAvailable()) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error('Dynamo cannot run, and KVRELAY_REQUIRE_ALL=1 forbids to skip it');
  }
  return false;
}

/** Dynamo's registry in files. */
export class RegistryFolder {
  readonly path: string = mkdtempSync(join(tmpdir(), 'kvrelay-registry-'));
  readonly #own = new Set<string>();
  readonly #keepAlive: NodeJS.Timeout;

  constructor() {
    // Whatever has not been touched for 10 s is removed by any process of Dynamo.
    this.#keepAlive = setInterval(() => {
      const now = new Date();
      for (const path of this.#own) utimesSync(path, now, now);
    }, KEEP_ALIVE_MS);
    onTestFinished(() => {
      clearInterval(this.#keepAlive);
      rmSync(this.path, { recursive: true, force: true });
    });
  }

  put(bucket: string, key: string, json: string): void {
    const folder = join(this.path, 'v1', bucket);
    mkdirSync(folder, { recursive: true });
    const draft = join(folder, '.tmp_0000000000000001');
    writeFileSync(draft, json);
    const path = join(folder, fileName(key));
    renameSync(draft, path);
    this.#own.add(path);
  }

  /** Instance ids below `prefix`, which a file's name ends with. */
  async instanceId(prefix: string): Promise<bigint> {
    const folder = join(this.path, 'v1', 'instances');
    const start = fileName(prefix);
    const find = (): string | undefined =>
      readdirSync(folder).find(
        (name) => name.startsWith(start) && readFileSync(join(folder, name)).length > 0,
      );
    if (!(await eventually(() => find() !== undefined))) throw new Error('there is no worker');
    return BigInt(`0x${find()?.slice(start.length)}`);
  }
}

function fileName(key: string): string {
  return key.replace(/[^A-Za-z0-9]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
    return `%${code}`;
  });
}
