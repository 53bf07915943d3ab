/**
 * A real etcd for a test: started on loopback, gone with the test.
 *
 * Owns     the server's process and its temporary folder.
 * Throws   when no server can be had, or the one at hand does not start or answer in time.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cleanUpAfter, keepTail, stopChild } from './child-guard.ts';
import { freePorts } from './free-ports.ts';

const START_TIMEOUT_MS = 10_000;

export interface EtcdTls {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface EtcdServerOptions {
  /** Free ones are taken without it; a test that restarts a server names the old one. */
  readonly port?: number;
  /** Client certificates are asked for too. */
  readonly tls?: EtcdTls;
  /** Where its data are kept beyond its end; they go with it if absent. */
  readonly dataDirectory?: string;
}

export interface EtcdServerProcess {
  readonly url: string;
  readonly port: number;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  stop(): Promise<void>;
  /** Sends a signal; after SIGKILL await `exited`. SIGSTOP and SIGCONT freeze and thaw it. */
  kill(signal: NodeJS.Signals): void;
}

/** As natsServerAvailable(): for `describe.skipIf(!etcdServerAvailable())`. */
export function etcdServerAvailable(): boolean {
  if (binary() !== null) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error('No etcd, and KVRELAY_REQUIRE_ALL=1 forbids to skip its tests');
  }
  return false;
}

export async function startEtcdServer(options: EtcdServerOptions = {}): Promise<EtcdServerProcess> {
  const path = binary();
  if (path === null) throw new Error('No etcd: `node scripts/etcd-server.mjs` fetches one');
  const folder = mkdtempSync(join(tmpdir(), `kvrelay-etcd-${process.pid}-`));
  const port = options.port ?? (await freePorts(1));
  const peerPort = await freePorts(1);
  const { tls } = options;
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const flags = [
    ['--data-dir', options.dataDirectory ?? join(folder, 'data')],
    ['--listen-client-urls', url],
    ['--advertise-client-urls', url],
    ['--listen-peer-urls', peerUrl],
    ['--initial-advertise-peer-urls', peerUrl],
    ['--initial-cluster', `default=${peerUrl}`],
    ...(tls === undefined
      ? []
      : [
          ['--cert-file', tls.certFile],
          ['--key-file', tls.keyFile],
          ['--trusted-ca-file', tls.caFile],
          ['--client-cert-auth'],
        ]),
  ].flat();
  const child = spawn(path, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = keepTail(child);
  const exited = cleanUpAfter(child, folder);
  try {
    await serving(child, log);
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    throw new Error(`etcd does not start: ${(error as Error).message}\n${log.text}`);
  }
  return {
    url,
    port,
    exited,
    stop: () => stopChild(child, exited),
    kill: (signal) => void child.kill(signal),
  };
}

let foundBinary: string | null | undefined;

function binary(): string | null {
  if (process.env.KVRELAY_ETCD_MISSING) return null;
  if (foundBinary !== undefined) return foundBinary;
  const script = fileURLToPath(new URL('../../scripts/etcd-server.mjs', import.meta.url));
  const finder = spawnSync(process.execPath, [script, '--local'], { encoding: 'utf8' });
  foundBinary = finder.status === 0 ? finder.stdout.trim() : null;
  return foundBinary;
}

/** It says so on standard error once clients are served. */
async function serving(child: ChildProcess, log: { readonly text: string }): Promise<void> {
  const deadlineMs = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadlineMs) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    if (/serving (insecure |)client (requests|traffic)/.test(log.text)) return;
    await sleep(10);
  }
  throw new Error(`no answer within ${START_TIMEOUT_MS} ms`);
}
