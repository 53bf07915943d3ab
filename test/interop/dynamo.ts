/**
 * Processes of a stock Dynamo 1.6.1, and the registry in files where they meet this test.
 *
 * Ends     each process with the test that started it; the registry's folder goes with it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { natsServerAvailable } from '../support/nats-server.ts';
import { eventually } from '../support/plane-collector.ts';

/** Python with Dynamo's runtime; empty where there is none. */
const DYNAMO_PYTHON = process.env.KVRELAY_INTEROP_DYNAMO ?? '';

const STOP_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 2000;

/** With KVRELAY_REQUIRE_ALL=1 a missing Dynamo is an error, so that nothing is skipped unseen. */
export function hasDynamo(): boolean {
  if (DYNAMO_PYTHON !== '' && natsServerAvailable()) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error('Dynamo cannot run, and KVRELAY_REQUIRE_ALL=1 forbids to skip it');
  }
  return false;
}

export interface DynamoSettings {
  readonly namespace: string;
  readonly folder: string;
  readonly requestPlane: 'tcp' | 'nats';
  readonly natsUrl: string;
}

/** Its JSON lines so far, integers of more than 15 digits as text. */
export class DynamoProcess {
  readonly lines: Record<string, unknown>[] = [];
  readonly #child: ChildProcess;
  #log = '';

  constructor(
    program: 'queried_worker' | 'queried_router',
    settings: DynamoSettings,
    flags: string[] = [],
  ) {
    const script = fileURLToPath(new URL(`../peers/${program}.py`, import.meta.url));
    const own = [
      `--namespace=${settings.namespace}`,
      `--discovery-dir=${settings.folder}`,
      `--request-plane=${settings.requestPlane}`,
      '--event-plane=nats',
      `--nats-url=${settings.natsUrl}`,
    ];
    this.#child = spawn(DYNAMO_PYTHON, [script, ...own, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, DYN_LOG: 'info' },
    });
    const chunks: string[] = [];
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      chunks.push(chunk);
      // A state of the router may be a line of many megabytes: joined once, when it ends.
      if (!chunk.includes('\n')) return;
      const lines = chunks.splice(0).join('').split('\n');
      chunks.push(lines.pop() ?? '');
      for (const line of lines) if (line.startsWith('{')) this.lines.push(parseLine(line));
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-4000);
    });
    onTestFinished(() => this.stop());
  }

  /** The newest line that `event` names. */
  last(event: string): Record<string, unknown> | undefined {
    return this.lines.findLast((line) => line.event === event);
  }

  async started(event: string): Promise<void> {
    const isUp = await eventually(() => this.last(event) !== undefined, 60_000);
    if (!isUp) throw new Error(`it does not start: ${this.#log}`);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'close');
    this.#child.kill('SIGTERM');
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(impatience);
  }
}

function parseLine(line: string): Record<string, unknown> {
  const exact = line.replace(/"(?:[^"\\]|\\.)*"|\d{16,}(?![\d.])/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
  return JSON.parse(exact) as Record<string, unknown>;
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
