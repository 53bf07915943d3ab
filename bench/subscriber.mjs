/**
 * The router's side of an end-to-end run: takes everything, looks at it only afterwards.
 *
 *   node bench/subscriber.mjs nats HOST:PORT [SUBJECT]
 *   node bench/subscriber.mjs zmq ENDPOINT
 *   ... --bytes           messages are not envelopes: only counted
 *   ... --arrivals FILE   leaves in FILE, for each stored block, its hash and when its message had arrived, both u64; with
 *                         --bytes, for each message, the number that it begins with
 *   ... --reconnect       NATS may go away and come back; what comes twice counts once
 *
 * Says     a line of JSON when subscribed, one when the first bytes have come (`firstNs`, monotonic clock; of ZMTP those are
 *          a greeting), one when the block that ends a stream has come (`endNs`), and then what all messages held
 *          (received.mjs) and the `silences` in which none came.
 * Costs    a search in what has come; nothing is parsed meanwhile, and next to nothing is made, so that a measurement on
 *          few cores is not one of this process.
 */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { contentOf, countOf, distinct, splitNatsStream, splitZmtpStream } from './received.mjs';
import { END_BYTES } from './streams.mjs';
import { subscribeTo } from './zmtp-subscription.mjs';

/** What of the last message is still on the way when the end has been seen. */
const TAIL_MS = 100;
const RECONNECT_MS = 20;
/** Of one read at most, and of the memory that reads go to. */
const READ_BYTES = 256 << 10;
const PIECE_BYTES = 64 << 20;
const SEAM_BYTES = END_BYTES.length - 1;
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
  const look = (key, message) => words.push(BigInt(key), taken[message].arrivedNs);
  const note = values.arrivals === undefined ? undefined : look;
  const unique = values.reconnect ? distinct(payloads) : payloads;
  const content = values.bytes ? countOf(payloads, note) : contentOf(unique, note);
  if (note !== undefined) writeFileSync(values.arrivals, BigUint64Array.from(words));
  say({ ...content, silences: heard });
}

/**
 * What one connection has brought; a message has arrived with the read that brought its end. Reads go to large pieces
 * of memory: buffers of their own would have the garbage collector hold both cores for milliseconds.
 */
class Connection {
  #pieces = [];
  #piece = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  length = 0;
  #reads = [];
  /** Finds the messages in all that was read. */
  #split;
  isTorn = false;

  constructor(split) {
    this.#split = split;
  }

  /** Where the next read goes. */
  room() {
    if (this.#piece.length - this.#end < READ_BYTES) this.#open();
    return this.#piece.subarray(this.#end, this.#end + READ_BYTES);
  }

  #open() {
    const full = this.#piece.subarray(this.#start, this.#end);
    this.#pieces.push(full);
    this.#piece = Buffer.allocUnsafe(PIECE_BYTES);
    // What is searched for may lie across the end of a piece.
    this.#start = full.subarray(-SEAM_BYTES).copy(this.#piece);
    this.#end = this.#start;
  }

  /** Takes a read, and gives its bytes and the few in front of them. */
  add(byteCount) {
    const from = Math.max(0, this.#end - SEAM_BYTES);
    this.#end += byteCount;
    this.length += byteCount;
    this.#reads.push({ end: this.length, arrivedNs: arrived() });
    return this.#piece.subarray(from, this.#end);
  }

  messages() {
    const bytes = Buffer.concat([...this.#pieces, this.#piece.subarray(this.#start, this.#end)]);
    let read = 0;
    return this.#split(bytes, this.isTorn).map((payload) => {
      const end = payload.byteOffset - bytes.byteOffset + payload.length;
      while (this.#reads[read].end < end) read++;
      return { payload, arrivedNs: this.#reads[read].arrivedNs };
    });
  }
}

const connections = [];
let isEnded = false;

function take(bytes) {
  if (isEnded || !bytes.includes(END_BYTES)) return;
  isEnded = true;
  void finish(() => connections.flatMap((one) => one.messages()));
}

/** A NATS client of one subscription: a library would parse every message while the clock runs. */
function subscribeNats() {
  const { hostname, port } = new URL(`tcp://${address}`);
  const connection = new Connection(splitNatsStream);
  connections.push(connection);
  let isSubscribed = false;
  const greeting = Buffer.alloc(READ_BYTES);
  const onread = {
    buffer: () => (isSubscribed ? connection.room() : greeting),
    callback: (byteCount) => {
      if (isSubscribed) take(connection.add(byteCount));
      else if (greeting.subarray(0, byteCount).includes('PONG\r\n')) {
        isSubscribed = true;
        say({ subscribed: true });
      }
      return true;
    },
  };
  const socket = connect({ port: Number(port), host: hostname, onread });
  const options = { verbose: false, pedantic: false, lang: 'bench', version: '1', protocol: 1 };
  socket.write(`CONNECT ${JSON.stringify(options)}\r\nSUB ${subject} 1\r\nPING\r\n`);
  if (!values.reconnect) return;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    connection.isTorn = true;
    if (!isEnded) setTimeout(subscribeNats, RECONNECT_MS);
  });
}

async function subscribeZmq() {
  const connection = new Connection(splitZmtpStream);
  connections.push(connection);
  await subscribeTo(
    address,
    () => connection.room(),
    (byteCount) => take(connection.add(byteCount)),
  );
  say({ subscribed: true });
}

process.stdin.resume().on('end', () => process.exit(0));
if (plane === 'nats') subscribeNats();
else await subscribeZmq();
