/** A nats-server on the loopback, for the runs of one bench. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Program } from './processes.mjs';

const START_MS = 10_000;

/** `{url, stop}`, on a free port unless one is given; `stop` takes a signal. */
export async function startBroker(path, port = -1) {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  const config = join(folder, 'nats.conf');
  // The counting subscriber answers no ping.
  const lines = [
    'host: 127.0.0.1',
    `port: ${port}`,
    `ports_file_dir: "${folder}"`,
    'ping_interval: "1h"',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const program = new Program(path, ['-c', config]);
  const stop = async (signal = 'SIGTERM') => {
    await program.stop(signal);
    rmSync(folder, { recursive: true, force: true });
  };
  const portsFile = join(folder, `nats-server_${program.pid}.ports`);
  const deadlineMs = performance.now() + START_MS;
  while (performance.now() < deadlineMs) {
    const text = existsSync(portsFile) ? readFileSync(portsFile, 'utf8') : '';
    const bound = /"nats":\s*\[\s*"nats:\/\/[^"]*:(\d+)"/.exec(text)?.[1];
    if (bound !== undefined) return { url: `nats://127.0.0.1:${bound}`, stop };
    await sleep(20);
  }
  await stop();
  throw new Error('nats-server does not start');
}
