/**
 * Further subscribers of the ZMQ plane, all in one process, which read and forget.
 *
 *   node bench/more-routers.mjs ENDPOINT COUNT
 *
 * Prints   {"subscribed": COUNT} as JSON once all have said what they want. Ends with its input.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  GREETING,
  GREETING_BYTES,
  SUBSCRIBER_READY,
  subscription,
} from '../dist/connections/zmtp/handshake.js';

/** Nothing tells when a subscription has arrived. */
const SUBSCRIBED_MS = 100;
const READ_BYTES = 1 << 20;

const [endpoint, count] = process.argv.slice(2);
const { hostname, port } = new URL(endpoint);
// Nobody looks at what lies in it.
const buffer = Buffer.allocUnsafe(READ_BYTES);

function subscribe() {
  return new Promise((resolve) => {
    let bytes = 0;
    const callback = (byteCount) => {
      const wasGreeted = bytes > GREETING_BYTES;
      bytes += byteCount;
      // Before its own READY, libzmq takes no subscription.
      if (!wasGreeted && bytes > GREETING_BYTES)
        resolve(socket.write(subscription(Buffer.alloc(0), 1)));
      return true;
    };
    const socket = connect({ port: Number(port), host: hostname, onread: { buffer, callback } });
    socket.on('error', () => undefined);
    socket.write(Buffer.concat([GREETING, SUBSCRIBER_READY]));
  });
}

process.stdin.resume().on('end', () => process.exit(0));
await Promise.all(Array.from({ length: Number(count) }, subscribe));
await sleep(SUBSCRIBED_MS);
process.stdout.write(`${JSON.stringify({ subscribed: Number(count) })}\n`);
