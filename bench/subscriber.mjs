/**
 * The router's side of an end-to-end run: takes everything, looks at it only afterwards.
 *
 *   node bench/subscriber.mjs nats HOST:PORT [SUBJECT]
 *   node bench/subscriber.mjs zmq ENDPOINT
 *   ... --bytes        messages are not envelopes: only counted
 *
 * Says     a line of JSON when subscribed, and one when the block that ends a stream has come: when that
 *          was (`endNs`, monotonic clock), and what all messages held (received.mjs).
 * Costs    a copy of the bytes from the socket and one search in them; nothing is parsed meanwhile, so
 *          that a measurement on few cores is not one of this process.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Subscriber } from 'zeromq';
import { contentOf, countOf, splitNatsStream } from './received.mjs';
import { END_BYTES } from './streams.mjs';

/** What of the last message is still on the way when the end has been seen. */
const TAIL_MS = 100;
/** A subscription follows the handshake at once, but nothing tells when it has arrived. */
const SUBSCRIBED_MS = 100;

const isBytes = process.argv.includes('--bytes');
const [plane, address, subject = 'namespace.>'] = process.argv
  .slice(2)
  .filter((arg) => arg !== '--bytes');

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function finish(takeMessages) {
  const endNs = process.hrtime.bigint();
  await sleep(TAIL_MS);
  const messages = takeMessages();
  say({ endNs: String(endNs), ...(isBytes ? countOf(messages) : contentOf(messages)) });
}

/** A NATS client of one subscription: a library would parse every message while the clock runs. */
function subscribeNats() {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connect(Number(port), hostname);
  const options = { verbose: false, pedantic: false, lang: 'bench', version: '1', protocol: 1 };
  socket.write(`CONNECT ${JSON.stringify(options)}\r\nSUB ${subject} 1\r\nPING\r\n`);
  const chunks = [];
  let isSubscribed = false;
  let isEnded = false;
  let seam = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    if (!isSubscribed) {
      isSubscribed = chunk.includes('PONG\r\n');
      if (isSubscribed) say({ subscribed: true });
      return;
    }
    chunks.push(chunk);
    const wide = END_BYTES.length - 1;
    const joint = Buffer.concat([seam, chunk.subarray(0, wide)]);
    seam = Buffer.concat([seam, chunk.subarray(-wide)]).subarray(-wide);
    if (isEnded || !(chunk.includes(END_BYTES) || joint.includes(END_BYTES))) return;
    isEnded = true;
    void finish(() => splitNatsStream(Buffer.concat(chunks)));
  });
}

async function subscribeZmq() {
  const socket = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
  socket.events.on('handshake', () => {
    setTimeout(() => say({ subscribed: true }), SUBSCRIBED_MS);
  });
  socket.subscribe();
  socket.connect(address);
  const messages = [];
  for await (const frames of socket) {
    // Version and length stand in front of an envelope.
    const envelope = frames.at(-1).subarray(5);
    messages.push(envelope);
    if (envelope.includes(END_BYTES)) break;
  }
  await finish(() => messages);
}

process.stdin.resume().on('end', () => process.exit(0));
if (plane === 'nats') subscribeNats();
else await subscribeZmq();
