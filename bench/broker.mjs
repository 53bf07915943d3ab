/** A nats-server on a free port of the loopback, for the runs of one bench. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Program } from './processes.mjs';

const START_MS = 10_000;

export async function startBroker(path) {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  const config = join(folder, 'nats.conf');
  // The counting subscriber answers no ping.
  const lines = [
    'host: 127.0.0.1',
    'port: -1',
    `ports_file_dir: "${folder}"`,
    'ping_interval: "1h"',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const program = new Program(path, ['-c', config]);
  const stop = async () => {
    await program.stop('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  };
  const portsFile = join(folder, `nats-server_${program.pid}.ports`);
  const deadlineMs = performance.now() + START_MS;
  while (performance.now() < deadlineMs) {
    const text = existsSync(portsFile) ? readFileSync(portsFile, 'utf8') : '';
    const port = /"nats":\s*\[\s*"nats:\/\/[^"]*:(\d+)"/.exec(text)?.[1];
    if (port !== undefined) return { url: `nats://127.0.0.1:${port}`, stop };
    await sleep(20);
  }
  await stop();
  throw new Error('nats-server does not start');
}
