/**
 * The engine of the end-to-end runs: `node bench/engine.mjs STREAM [--quick]`.
 *
 * Makes    the whole stream first, then serves any number of runs of it, a fresh socket each.
 * Takes    lines on stdin: `open`, `go` (needs a subscriber), `close`; ends with stdin.
 * Says     lines of JSON: what the stream holds; `endpoint`; `subscribed`; `startNs` and `sentNs`, times
 *          of the monotonic clock that all processes of a machine share.
 * Socket   without a high-water mark: whoever is slow loses nothing.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { XPublisher } from 'zeromq';
import { createStream, endFrames } from './streams.mjs';

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const [name, quick] = process.argv.slice(2);
const { batches, ...stream } = createStream(name, quick === '--quick');
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

const commands = { open, go, close: () => socket.close() };
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => void commands[line]());
await once(lines, 'close');
process.exit(0);
