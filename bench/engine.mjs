/**
 * The engine of the end-to-end runs: `node bench/engine.mjs STREAM [--quick] [--batches N]`.
 *
 * Makes    the whole stream first, then serves any number of runs of it, a fresh socket each.
 * Takes    lines on stdin; ends with stdin:
 *            open                     before all others
 *            go                       sends everything at once
 *            pace RATE BATCHES FILE   sends as many batches, RATE a second, and leaves in FILE when each left
 *            lossy EVERY LOST         sends everything at once but LOST batches of each EVERY, which have to be asked for
 *            hold BLOCKS              first stores so many blocks that stay
 *            close
 * Says     lines of JSON: what the stream holds; `endpoint` and `replayEndpoint`; `subscribed`; of `hold` `held`; `startNs`
 *          and `sentNs`, times of the monotonic clock that all processes of a machine share.
 * Replay   answers as vLLM does, with all that was sent from a number on.
 * Paced    by a timer of 1 ms: what is due leaves together. FILE has, for each batch, the hash of the last block that
 *          it stores and the time at which it left, both u64; `lateMs` is the longest time that one left too late.
 * Socket   without a high-water mark: whoever is slow loses nothing.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Router, XPublisher } from 'zeromq';
import { LiveBlocks } from './live-blocks.mjs';
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

const EMPTY = Buffer.alloc(0);
const END_MARKER = Buffer.alloc(8, 0xff);

let socket = null;
let router = null;
/** Batches of this run, in the order of their numbers; those of `hold` are in front of the stream's. */
let run = messages;
let sent = 0;

async function open() {
  run = messages;
  sent = 0;
  socket = new XPublisher({ linger: 0, sendHighWaterMark: 0 });
  router = new Router({ linger: 0, sendHighWaterMark: 0 });
  await socket.bind('tcp://127.0.0.1:0');
  await router.bind('tcp://127.0.0.1:0');
  void answerReplays(router);
  const opened = socket;
  opened.receive().then(
    () => say({ subscribed: true }),
    (error) => {
      if (!opened.closed) throw error;
    },
  );
  say({ endpoint: socket.lastEndpoint, replayEndpoint: router.lastEndpoint });
}

function close() {
  socket.close();
  router.close();
}

async function answerReplays(opened) {
  for await (const [identity, delimiter, start] of opened) {
    if (delimiter?.length !== 0 || start?.length !== 8) continue;
    const end = sent;
    for (let at = Number(start.readBigUInt64BE()); at < end; at++) {
      await opened.send([identity, EMPTY, ...run[at]]);
    }
    await opened.send([identity, EMPTY, EMPTY, END_MARKER, EMPTY]);
  }
}

async function hold(blocks) {
  const held = new LiveBlocks(Number(blocks), { blockSize: stream.blockSize, seed: 3 });
  const first = [...held.fill()];
  // The numbers of the stream's batches go on behind these.
  const numbered = messages.map(([topic, , payload], at) => {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(BigInt(first.length + at));
    return [topic, number, payload];
  });
  run = [...first, ...numbered];
  for (; sent < first.length; sent++) await socket.send(run[sent]);
  say({ held: held.size });
}

async function go() {
  const startNs = process.hrtime.bigint();
  for (; sent < run.length; sent++) await socket.send(run[sent]);
  say({ startNs: String(startNs), sentNs: String(process.hrtime.bigint()) });
}

async function lossy(every, lost) {
  const startNs = process.hrtime.bigint();
  const last = run.length - 1;
  for (; sent <= last; sent++) {
    const isLost = sent % every >= every - lost && sent < last;
    if (!isLost) await socket.send(run[sent]);
  }
  say({ startNs: String(startNs), sentNs: String(process.hrtime.bigint()) });
}

async function pace(batchesPerSecond, most, file) {
  const rate = Number(batchesPerSecond);
  const end = Math.min(Number(most), batches.length);
  const first = run.length - messages.length;
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
      await socket.send(run[first + at]);
    }
    await sleep(1);
  }
  await socket.send(endFrames(first + end, stream.blockSize));
  const sentNs = process.hrtime.bigint();
  writeFileSync(file, left);
  say({ startNs: String(startNs), sentNs: String(sentNs), lateMs: lateNs / 1e6 });
}

const commands = { open, go, pace, lossy, hold, close };
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [command, ...args] = line.split(' ');
  void commands[command](...args);
});
await once(lines, 'close');
process.exit(0);
