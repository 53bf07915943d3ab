/** How `kvrelay play` ends: files and addresses that are none, and signals. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { CliProcess, recordingOf, temporaryFolder } from './record-process.ts';

function batches(count: number): Buffer[][] {
  return Array.from({ length: count }, (_, index) =>
    batchFrames(batch([storeEvent([index])]), index),
  );
}

function fileOf(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.kvrec');
  writeFileSync(path, bytes);
  return path;
}

test.each([
  ['what is no recording', Buffer.from('hello\n'), /KVR_RECORDING: Cannot read .*first line/],
  ['a recording without messages', recordingOf([]), /There is no message to play/],
])('%s ends it with one line and exit code 1', async (_, bytes, report) => {
  const played = new CliProcess(['play', fileOf(bytes), '--endpoint', 'tcp://127.0.0.1:0']);
  expect(await played.exitCode()).toBe(1);
  expect(played.stderr).toMatch(report);
  expect(played.logs.filter(({ level }) => level === 'fatal')).toHaveLength(1);
});

test('a port that is taken ends it with the remedy', async () => {
  const path = fileOf(recordingOf(batches(1)));
  const first = new CliProcess(['play', path, '--endpoint', 'tcp://127.0.0.1:0', '--wait']);
  await first.reaches('ready');
  const second = new CliProcess(['play', path, '--endpoint', String(first.results[0]?.endpoint)]);
  expect(await second.exitCode()).toBe(1);
  expect(second.stderr).toMatch(/KVR_PLAY_ENDPOINT: Cannot publish on .*EADDRINUSE/);
});

test('a signal at any moment ends it cleanly', async () => {
  const path = fileOf(recordingOf(batches(3)));
  for (const waitMs of [0, 60, 120, 400]) {
    const played = new CliProcess(['play', path, '--endpoint', 'tcp://127.0.0.1:0', '--wait']);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const code = await played.exitCode('SIGTERM');
    // Before its handlers stand, a process of Node is ended by the signal itself.
    expect([0, null]).toContain(code);
    if (waitMs === 400) expect(code).toBe(0);
  }
});
