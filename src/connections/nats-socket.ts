/**
 * The socket inside the client, for messages that lie ready in memory as the protocol has them, and for its end.
 *
 * Why      the client's own `publish` makes several buffers a message and copies them all into a new one, outside of
 *          the heap: work and garbage that grow with every message.
 * Order    behind all that the client has been given before, in front of all that it is given later.
 * Version  none of this is the client's public face: package.json names one version, and a test of this file looks
 *          for what is used here.
 */
import type { NatsConnection } from 'nats';
import type { NatsConnectionImpl } from 'nats/lib/nats-base-client/nats.js';
import type { ProtocolHandler } from 'nats/lib/nats-base-client/protocol.js';

function protocolOf(client: NatsConnection): ProtocolHandler {
  return (client as NatsConnectionImpl).protocol;
}

/** Whether there is a link now, with its handshake done; the client's listeners are told of its end later. */
export function isLinked(client: NatsConnection): boolean {
  const { connected, transport } = protocolOf(client);
  return connected && !transport.isClosed;
}

/** Sends the bytes as they lie; the client must be linked. They may be read until the server answers what is sent later. */
export function writeFrames(client: NatsConnection, frames: Uint8Array): void {
  const { outbound, transport } = protocolOf(client);
  if (outbound.size() > 0) transport.send(outbound.drain());
  transport.send(frames);
}

/** Ends the link at once. The client would first wait for all that is queued to leave, for which a frozen server has no room. */
export function endLink(client: NatsConnection): void {
  void protocolOf(client).transport.close();
}
