/**
 * What compiled code is worth to the first batches: microseconds a batch for stretches of the decode stream,
 * through a relay without sockets, in a process that has warmed up and in one that has not.
 *
 *   node bench/warm-up.mjs
 *
 * Prints a table; a parent process gets the figures as a message.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { warmUp } from '../dist/warm-up.js';
import { createLoneRelay, loneConfig } from './lone-relay.mjs';
import { table } from './report.mjs';
import { createStream } from './streams.mjs';

const ENDS = [50, 200, 500, 1000, 2000, 4000];

async function play(isWarm) {
  const { batches } = createStream('decode', true);
  const config = loneConfig();
  const before = process.cpuUsage();
  const started = performance.now();
  if (isWarm) await warmUp(config, () => true);
  const warmUpMs = performance.now() - started;
  const { user, system } = process.cpuUsage(before);
  const relay = createLoneRelay(config);
  const microseconds = [];
  let at = 0;
  for (const end of ENDS) {
    const from = performance.now();
    const count = end - at;
    for (; at < end; at++) relay.push(batches[at].frames);
    microseconds.push((1000 * (performance.now() - from)) / count);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { microseconds, warmUpMs, warmUpCpuMs: (user + system) / 1000 };
}

const [mode] = process.argv.slice(2);
if (mode === undefined) {
  const run = async (as) => {
    const child = fork(fileURLToPath(import.meta.url), [as]);
    const [[result]] = await Promise.all([once(child, 'message'), once(child, 'exit')]);
    return result;
  };
  const cold = await run('cold');
  const warm = await run('warm');
  const label = (end, index) => `${ENDS[index - 1] ?? 0} to ${end}`;
  const rows = ENDS.map((end, index) => [
    label(end, index),
    cold.microseconds[index].toFixed(1),
    warm.microseconds[index].toFixed(1),
  ]);
  console.log('\nThe first batches, in process\n');
  console.log(table(['batches', 'us/batch, cold', 'us/batch, warm'], rows));
  const [ms, cpuMs] = [warm.warmUpMs, warm.warmUpCpuMs].map(Math.round);
  console.log(`\nwarm-up: ${ms} ms, ${cpuMs} ms of CPU`);
  process.send?.({ ends: ENDS, cold, warm });
} else {
  process.send(await play(mode === 'warm'), () => process.disconnect());
}
