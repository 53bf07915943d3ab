/**
 * The engine of the end-to-end runs: `node bench/engine.mjs STREAM [--quick] [--batches N]`.
 *
 * Makes    the whole stream first, then serves any number of runs of it, a fresh socket each.
 * Takes    lines on stdin; ends with stdin:
 *            open                     needs a subscriber before
 *            go                       sends everything at once
 *            pace RATE BATCHES FILE   sends as many batches, RATE a second, and leaves in FILE when each left
 *            close
 * Says     lines of JSON: what the stream holds; `endpoint`; `subscribed`; `startNs` and `sentNs`, times
 *          of the monotonic clock that all processes of a machine share.
 * Paced    by a timer of 1 ms: what is due leaves together. FILE has, for each batch, the hash of the last block that
 *          it stores and the time at which it left, both u64; `lateMs` is the longest time that one left too late.
 * Socket   without a high-water mark: whoever is slow loses nothing.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { XPublisher } from 'zeromq';
import { createStream, endFrames } from './streams.mjs';

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, batches: { type: 'string' } },
});
const count = values.batches === undefined ? null : Number(values.batches);
const { batches, ...stream } = createStream(positionals[0], values.quick, count);
const messages = batches.map(({ frames }) => frames);
messages.push(endFrames(messages.length, stream.blockSize));
// The batch that ends the stream is one event of one block.
say({ ...stream, batches: messages.length, events: stream.events + 1, blocks: stream.blocks + 1 });

let socket = null;

async function open() {
  socket = new XPublisher({ linger: 0, sendHighWaterMark: 0 });
  await socket.bind('tcp://127.0.0.1:0');
  const opened = socket;
  opened.receive().then(
    () => say({ subscribed: true }),
    (error) => {
      if (!opened.closed) throw error;
    },
  );
  say({ endpoint: socket.lastEndpoint });
}

async function go() {
  const startNs = process.hrtime.bigint();
  for (const frames of messages) await socket.send(frames);
  say({ startNs: String(startNs), sentNs: String(process.hrtime.bigint()) });
}

async function pace(rate, most, file) {
  const end = Math.min(Number(most), batches.length);
  const left = new BigUint64Array(2 * end);
  const startNs = process.hrtime.bigint();
  let lateNs = 0;
  for (let at = 0; at < end; ) {
    const dueNs = Number(process.hrtime.bigint() - startNs);
    for (const due = Math.min(end, (dueNs * rate) / 1e9); at < due; at++) {
      const { high, low } = batches[at].last;
      const nowNs = process.hrtime.bigint();
      left.set([(BigInt(high) << 32n) | BigInt(low), nowNs], 2 * at);
      lateNs = Math.max(lateNs, Number(nowNs - startNs) - (at * 1e9) / rate);
      await socket.send(batches[at].frames);
    }
    await sleep(1);
  }
  await socket.send(endFrames(end, stream.blockSize));
  const sentNs = process.hrtime.bigint();
  writeFileSync(file, left);
  say({ startNs: String(startNs), sentNs: String(sentNs), lateMs: lateNs / 1e6 });
}

const commands = { open, go, pace, close: () => socket.close() };
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [command, ...args] = line.split(' ');
  void commands[command](...args);
});
await once(lines, 'close');
process.exit(0);
