/**
 * The floor under a relay: takes engine messages and publishes as many bytes as a relay would, unread.
 *
 *   node bench/floor.mjs nats URL ENGINE_ENDPOINT BATCHES BYTES_A_MESSAGE
 *   node bench/floor.mjs zmq tcp://127.0.0.1:0 ENGINE_ENDPOINT BATCHES BYTES_A_MESSAGE
 *
 * Uses     kvrelay's engine socket and the client libraries of its planes, with what is known to make them fast: NATS
 *          messages leave once a turn of the event loop. What a relay needs above this is its own work.
 * Message  u64 number of the engine message, then zeros; the last one ends with the mark of a run's end. On the ZMQ plane it
 *          begins behind as many bytes as stand in front of an envelope there.
 * Says     a line of JSON when it is ready.
 */
import { connect } from 'nats';
import { XPublisher } from 'zeromq';
import { createEngineSocket } from '../dist/listener/engine-socket.js';
import { HEAD_BYTES } from './received.mjs';
import { END_BYTES } from './streams.mjs';

const SUBJECT = 'namespace.bench.component.floor.endpoint.generate.kv-events';

const [plane, planeAddress, engineEndpoint, batches, bytes] = process.argv.slice(2);

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function natsPublisher() {
  const client = await connect({ servers: planeAddress });
  let waiting = [];
  const send = () => {
    for (const message of waiting) client.publish(SUBJECT, message);
    waiting = [];
  };
  const publish = (message) => {
    waiting.push(message);
    if (waiting.length === 1) setImmediate(send);
  };
  return { publish };
}

async function zmqPublisher() {
  const socket = new XPublisher({ linger: 0, sendHighWaterMark: 0 });
  await socket.bind(planeAddress);
  const frames = [Buffer.from('kv-events'), Buffer.alloc(8), Buffer.alloc(8)];
  const waiting = [];
  let isSending = false;
  const sendAll = async () => {
    isSending = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await socket.send([...frames, next]);
    }
    isSending = false;
  };
  const publish = (message) => {
    waiting.push(message);
    if (!isSending) void sendAll();
  };
  return { publish, planeEndpoint: socket.lastEndpoint };
}

process.stdin.resume().on('end', () => process.exit(0));
const { publish, planeEndpoint } = await (plane === 'nats' ? natsPublisher() : zmqPublisher());
const headBytes = plane === 'zmq' ? HEAD_BYTES : 0;
const size = headBytes + Math.max(Number(bytes), END_BYTES.length + 8);
let count = 0;
const engine = createEngineSocket({
  endpoint: engineEndpoint,
  bind: false,
  topic: '',
  receiveHwm: Number.POSITIVE_INFINITY,
  maxMessageBytes: 1 << 28,
  compat: 'safe',
  onMessage: ({ sequence }) => {
    // A message of its own each time, as a relay has.
    const message = Buffer.alloc(size);
    message.writeBigUInt64BE(sequence, headBytes);
    if (++count === Number(batches)) END_BYTES.copy(message, size - END_BYTES.length);
    publish(message);
  },
  onLink: () => undefined,
});
await engine.start();
say({ ready: true, planeEndpoint: planeEndpoint ?? null });
