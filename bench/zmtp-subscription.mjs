/** A subscription to all of a ZMQ plane, read from the wire: a library would parse every message while the clock runs. */
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

/** Reads into `room`, a buffer or what gives one, and says so to `onRead(byteCount)`; resolves once the subscription stands. */
export async function subscribeTo(endpoint, room, onRead = () => undefined) {
  const { hostname, port } = new URL(endpoint);
  let bytes = 0;
  let onOpened;
  const isOpened = new Promise((resolve) => {
    onOpened = resolve;
  });
  const callback = (byteCount) => {
    bytes += byteCount;
    // Before its own READY, libzmq takes no subscription.
    if (bytes > GREETING_BYTES) onOpened();
    onRead(byteCount);
    return true;
  };
  const onread = { buffer: room, callback };
  const socket = connect({ port: Number(port), host: hostname, onread });
  // The relay may end in the middle of what it sends.
  socket.on('error', () => undefined);
  socket.write(Buffer.concat([GREETING, SUBSCRIBER_READY]));
  await isOpened;
  socket.write(subscription(Buffer.alloc(0), 1));
  await sleep(SUBSCRIBED_MS);
}
