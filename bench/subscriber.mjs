/**
 * The router's side of an end-to-end run: takes everything, looks at it only afterwards.
 *
 *   node bench/subscriber.mjs nats HOST:PORT [SUBJECT]
 *   node bench/subscriber.mjs zmq ENDPOINT
 *   ... --bytes           messages are not envelopes: only counted
 *   ... --arrivals FILE   leaves in FILE, for each stored block, its hash and when its message had arrived, both u64
 *   ... --reconnect       NATS may go away and come back; what comes twice counts once
 *
 * Says     a line of JSON when subscribed, one when the first bytes have come (`firstNs`, monotonic clock), one when the
 *          block that ends a stream has come (`endNs`), and then what all messages held (received.mjs) and the `silences`
 *          in which none came.
 * Costs    a copy of the bytes from the socket and one search in them; nothing is parsed meanwhile, so
 *          that a measurement on few cores is not one of this process.
 */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Subscriber } from 'zeromq';
import { contentOf, countOf, distinct, splitNatsStream } from './received.mjs';
import { END_BYTES } from './streams.mjs';

/** What of the last message is still on the way when the end has been seen. */
const TAIL_MS = 100;
/** A subscription follows the handshake at once, but nothing tells when it has arrived. */
const SUBSCRIBED_MS = 100;
const RECONNECT_MS = 20;
/** Shorter ones are not told of. */
const SILENCE_NS = 5_000_000n;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    bytes: { type: 'boolean', default: false },
    arrivals: { type: 'string' },
    reconnect: { type: 'boolean', default: false },
  },
});
const [plane, address, subject = 'namespace.>'] = positionals;

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

let lastNs = null;
const silences = [];

/** The time of an arrival, which is taken note of. */
function arrived() {
  const nowNs = process.hrtime.bigint();
  if (lastNs === null) say({ firstNs: String(nowNs) });
  else if (nowNs - lastNs > SILENCE_NS) {
    silences.push({ fromNs: String(lastNs), ms: Number(nowNs - lastNs) / 1e6 });
  }
  lastNs = nowNs;
  return nowNs;
}

/** `take` gives `{payload, arrivedNs}` of each message. */
async function finish(take) {
  say({ endNs: String(process.hrtime.bigint()) });
  const heard = [...silences];
  await sleep(TAIL_MS);
  const taken = take();
  const payloads = taken.map(({ payload }) => payload);
  const words = [];
  const onStored = (hash, message) => words.push(BigInt(hash), taken[message].arrivedNs);
  const look = values.arrivals === undefined ? undefined : onStored;
  const unique = values.reconnect ? distinct(payloads) : payloads;
  const content = values.bytes ? countOf(payloads) : contentOf(unique, look);
  if (look !== undefined) writeFileSync(values.arrivals, BigUint64Array.from(words));
  say({ ...content, silences: heard });
}

/** What one connection to NATS has brought; a message has arrived with the chunk that holds its end. */
class Connection {
  chunks = [];
  #times = [];
  isTorn = false;

  add(chunk) {
    this.chunks.push(chunk);
    this.#times.push(arrived());
  }

  messages() {
    const bytes = Buffer.concat(this.chunks);
    let chunk = 0;
    let chunkEnd = this.chunks[0]?.length ?? 0;
    return splitNatsStream(bytes, this.isTorn).map((payload) => {
      const end = payload.byteOffset - bytes.byteOffset + payload.length;
      while (chunkEnd < end) chunkEnd += this.chunks[++chunk].length;
      return { payload, arrivedNs: this.#times[chunk] };
    });
  }
}

const connections = [];
let isEnded = false;

/** A NATS client of one subscription: a library would parse every message while the clock runs. */
function subscribeNats() {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connect(Number(port), hostname);
  const options = { verbose: false, pedantic: false, lang: 'bench', version: '1', protocol: 1 };
  socket.write(`CONNECT ${JSON.stringify(options)}\r\nSUB ${subject} 1\r\nPING\r\n`);
  const connection = new Connection();
  connections.push(connection);
  let isSubscribed = false;
  let seam = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    if (!isSubscribed) {
      isSubscribed = chunk.includes('PONG\r\n');
      if (isSubscribed) say({ subscribed: true });
      return;
    }
    connection.add(chunk);
    const wide = END_BYTES.length - 1;
    const joint = Buffer.concat([seam, chunk.subarray(0, wide)]);
    seam = Buffer.concat([seam, chunk.subarray(-wide)]).subarray(-wide);
    if (isEnded || !(chunk.includes(END_BYTES) || joint.includes(END_BYTES))) return;
    isEnded = true;
    void finish(() => connections.flatMap((one) => one.messages()));
  });
  if (!values.reconnect) return;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    connection.isTorn = true;
    if (!isEnded) setTimeout(subscribeNats, RECONNECT_MS);
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
    const payload = frames.at(-1).subarray(5);
    messages.push({ payload, arrivedNs: arrived() });
    if (payload.includes(END_BYTES)) break;
  }
  await finish(() => messages);
}

process.stdin.resume().on('end', () => process.exit(0));
if (plane === 'nats') subscribeNats();
else await subscribeZmq();
