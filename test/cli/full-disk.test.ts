import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

test.runIf(existsSync('/dev/full'))('a full disk behind stderr costs log lines alone', async () => {
  const url = `http://127.0.0.1:${await freePorts(1)}`;
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const flags = ['--block-size', '16', '--event-plane', 'none', '--http', url.slice(7)];
  const { PATH = '' } = process.env;
  const relay = spawn(process.execPath, [MAIN, 'run', ...flags], {
    env: { PATH },
    stdio: ['ignore', 'ignore', full],
  });
  const exited = once(relay, 'exit');
  onTestFinished(() => void relay.kill('SIGKILL'));
  let isLive = false;
  const ask = async (): Promise<void> => {
    const answer = await fetch(`${url}/health/live`).catch(() => null);
    isLive = answer?.status === 200;
  };
  await eventually(() => {
    void ask();
    return isLive || relay.exitCode !== null;
  });
  expect(isLive).toBe(true);
  relay.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});
