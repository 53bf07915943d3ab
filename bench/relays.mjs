/**
 * What a run can measure: kvrelay, Dynamo's publisher, the floor. Each starts between an engine and a
 * plane and resolves with its process once it takes events.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Program } from './processes.mjs';

const KVRELAY = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const READY_MS = 20_000;

/** Path of a script in this folder. */
export function scriptPath(name) {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** `kvrelay run` as it comes: `safe`, indexer and HTTP on; only addresses and block size are given. */
export async function startKvrelay(options) {
  const { engineEndpoint, blockSize, plane, natsUrl, nodeFlags = [], relayFlags = [] } = options;
  const onPlane =
    plane === 'nats'
      ? ['--event-plane', 'nats', '--nats-server', natsUrl]
      : ['--event-plane', 'zmq', '--plane-endpoint', 'tcp://127.0.0.1:0'];
  const flags = [
    '--engine-endpoint',
    engineEndpoint,
    '--block-size',
    String(blockSize),
    ...onPlane,
    ...relayFlags,
  ];
  const args = [...nodeFlags, KVRELAY, 'run', '--http', '127.0.0.1:0', '--log-format', 'json'];
  const program = new Program(process.execPath, [...args, ...flags], { speaksOn: 'stderr' });
  const { http } = await program.hear(({ msg }) => msg === 'kvrelay is running');
  const { ranks } = await readyStatus(http);
  return {
    program,
    planeEndpoint: plane === 'zmq' ? ranks[0].plane_endpoint : null,
    http,
    readStatus: async () => (await fetch(new URL('api/status', http))).json(),
    stop: () => program.stop('SIGTERM'),
  };
}

async function readyStatus(url) {
  const deadlineMs = performance.now() + READY_MS;
  while (performance.now() < deadlineMs) {
    const response = await fetch(new URL('api/status', url));
    const status = await response.json();
    if (status.state !== 'starting') return status;
    await sleep(20);
  }
  throw new Error(`kvrelay is not ready after ${READY_MS / 1000} s`);
}

export async function startDynamo({ engineEndpoint, blockSize, natsUrl, python }) {
  const discovery = mkdtempSync(join(tmpdir(), 'kvrelay-bench-'));
  const program = new Program(
    python,
    [scriptPath('dynamo_publisher.py'), engineEndpoint, String(blockSize)],
    { env: { NATS_SERVER: natsUrl, DYN_FILE_KV: discovery } },
  );
  const stop = async () => {
    await program.stop();
    rmSync(discovery, { recursive: true, force: true });
  };
  await program.hear(({ ready }) => ready);
  return { program, planeEndpoint: null, stop };
}

export async function startFloor({ engineEndpoint, plane, natsUrl, batches, messageBytes }) {
  const planeAddress = plane === 'nats' ? natsUrl : 'tcp://127.0.0.1:0';
  const args = [plane, planeAddress, engineEndpoint, String(batches), String(messageBytes)];
  const program = new Program(process.execPath, [scriptPath('floor.mjs'), ...args]);
  const { planeEndpoint } = await program.hear(({ ready }) => ready);
  return { program, planeEndpoint, stop: () => program.stop() };
}
