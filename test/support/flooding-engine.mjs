/**
 * An engine at full speed, in a process of its own so that nothing of the test slows it.
 *
 *   node flooding-engine.mjs '{"count": 50000}'   or   '{"seconds": 3, "sendHwm": 100000}'
 *
 * Sends    one root store a message, of `blocks` blocks (20: about 600 bytes); the hashes come again
 *          every 1000 messages, so that what a relay holds of them does not grow.
 * Says     its endpoint, and after each line on stdin (the first begins the flood, each further one is
 *          one more message) how many messages it has sent; ends with its stdin.
 */
import { createInterface } from 'node:readline';
import { Packr } from 'msgpackr';
import { XPublisher } from 'zeromq';

const DISTINCT = 1000;
const TURN_MESSAGES = 256;
const {
  count = Infinity,
  seconds = Infinity,
  sendHwm = 0,
  blocks = 20,
  messagesPerS = Infinity,
  endpoint = 'tcp://127.0.0.1:0',
} = JSON.parse(process.argv[2] ?? '{}');

const packr = new Packr({ useRecords: false, variableMapSize: true });
const payloads = Array.from({ length: DISTINCT }, (_, index) => {
  const first = index * blocks + 1;
  const store = {
    type: 'BlockStored',
    block_hashes: Array.from({ length: blocks }, (_, block) => BigInt(first + block) << 40n),
    parent_block_hash: null,
    token_ids: Array.from({ length: blocks * 4 }, (_, token) => 1000 + token),
    block_size: 4,
    medium: 'GPU',
  };
  return Buffer.from(packr.pack([1.5, [store], null]));
});

const socket = new XPublisher({ linger: 30_000, sendHighWaterMark: sendHwm });
await socket.bind(endpoint);
console.log(JSON.stringify({ endpoint: socket.lastEndpoint }));
await socket.receive();

const topic = Buffer.alloc(0);
let sent = 0;

async function sendOne() {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(sent));
  await socket.send([topic, number, payloads[sent % DISTINCT]]);
  sent++;
}

async function flood() {
  const startMs = performance.now();
  for (;;) {
    const elapsedS = (performance.now() - startMs) / 1000;
    if (elapsedS >= seconds || sent >= count) return;
    const due = Math.min(count, sent + TURN_MESSAGES, elapsedS * messagesPerS);
    while (sent < due) await sendOne();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let isFlooded = false;
for await (const _ of createInterface({ input: process.stdin })) {
  if (isFlooded) await sendOne();
  else await flood();
  isFlooded = true;
  console.log(JSON.stringify({ sent }));
}
socket.close();
