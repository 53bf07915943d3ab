/**
 * A real nats-server for a test: started on loopback, gone with the test.
 *
 * Owns     the server's process and its temporary folder; both go on stop() and kill(), and when the
 *          test process ends, however it does.
 * Throws   when no server can be had, or the one at hand does not start or answer in time.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cleanUpAfter, keepTail, stopChild } from './child-guard.ts';

const START_TIMEOUT_MS = 10_000;

export interface NatsServerOptions {
  /** The server's `max_payload`; 1 MiB without it. */
  readonly maxPayloadBytes?: number;
  /** Lines in nats-server's own configuration format. */
  readonly extraConfig?: string;
  /** A free port is taken without it; a test that restarts a server names the old one. */
  readonly port?: number;
}

export interface NatsServerProcess {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process is gone and its folder removed, for whatever reason. */
  readonly exited: Promise<void>;
  /** Ends it in an orderly way; resolves when it is gone. */
  stop(): Promise<void>;
  /** Sends a signal; after SIGKILL await `exited`. SIGSTOP and SIGCONT freeze and thaw it. */
  kill(signal: NodeJS.Signals): void;
}

/**
 * Whether tests against a server can run: for `describe.skipIf(!natsServerAvailable())`.
 * With KVRELAY_REQUIRE_ALL=1 a missing server is an error, so that nothing is skipped unseen.
 */
export function natsServerAvailable(): boolean {
  if (binary() !== null) return true;
  if (process.env.KVRELAY_REQUIRE_ALL === '1') {
    throw new Error('No nats-server, and KVRELAY_REQUIRE_ALL=1 forbids to skip its tests');
  }
  return false;
}

export async function startNatsServer(options: NatsServerOptions = {}): Promise<NatsServerProcess> {
  const path = binary();
  if (path === null) throw new Error('No nats-server: `node scripts/nats-server.mjs` fetches one');

  const folder = mkdtempSync(join(tmpdir(), `kvrelay-nats-${process.pid}-`));
  const configPath = join(folder, 'nats.conf');
  writeFileSync(configPath, configText(folder, options));
  const child = spawn(path, ['-c', configPath], { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = keepTail(child);
  const exited = cleanUpAfter(child, folder);
  try {
    const port = await answeringPort(child, folder);
    return {
      url: `nats://127.0.0.1:${port}`,
      port,
      pid: child.pid as number,
      exited,
      stop: () => stopChild(child, exited),
      kill: (signal) => void child.kill(signal),
    };
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    throw new Error(`nats-server does not start: ${(error as Error).message}\n${log.text}`);
  }
}

let foundBinary: string | null | undefined;

/** `npm test` looks once for all test files; a test file run alone looks for itself. */
function binary(): string | null {
  if (process.env.KVRELAY_NATS_MISSING) return null;
  if (foundBinary !== undefined) return foundBinary;
  const script = fileURLToPath(new URL('../../scripts/nats-server.mjs', import.meta.url));
  const finder = spawnSync(process.execPath, [script, '--local'], { encoding: 'utf8' });
  foundBinary = finder.status === 0 ? finder.stdout.trim() : null;
  return foundBinary;
}

function configText(folder: string, options: NatsServerOptions): string {
  const lines = [
    'host: 127.0.0.1',
    `port: ${options.port ?? -1}`,
    `ports_file_dir: ${JSON.stringify(folder)}`,
    `store_dir: ${JSON.stringify(join(folder, 'store'))}`,
  ];
  if (options.maxPayloadBytes !== undefined) lines.push(`max_payload: ${options.maxPayloadBytes}`);
  if (options.extraConfig !== undefined) lines.push(options.extraConfig);
  return `${lines.join('\n')}\n`;
}

async function answeringPort(child: ChildProcess, folder: string): Promise<number> {
  const deadlineMs = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadlineMs) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    const port = portOf(join(folder, `nats-server_${child.pid}.ports`));
    if (port !== null && (await greets(port))) return port;
    await sleep(10);
  }
  throw new Error(`no answer within ${START_TIMEOUT_MS} ms`);
}

/** The port in the file that the server writes once it listens; null until it is whole. */
function portOf(portsFile: string): number | null {
  if (!existsSync(portsFile)) return null;
  const match = /"nats":\s*\[\s*"[a-z]+:\/\/[^"]*:(\d+)"/.exec(readFileSync(portsFile, 'utf8'));
  return match === null ? null : Number(match[1]);
}

/** A nats-server speaks first: its INFO line shows that it serves this port. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const answer = (greeted: boolean): void => {
      socket.destroy();
      resolve(greeted);
    };
    socket.setTimeout(1_000, () => answer(false));
    socket.once('error', () => answer(false));
    socket.once('data', (bytes) => answer(bytes.toString('latin1').startsWith('INFO ')));
  });
}
