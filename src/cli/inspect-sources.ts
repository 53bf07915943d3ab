/** Where `kvrelay inspect` has its messages from: a file, a ZMQ socket, NATS. */
import { connect } from 'nats';
import { Subscriber } from 'zeromq';
import { connectable, formatZmqAddress } from '../config/addresses.ts';
import { natsClientOptions } from '../connections/nats-access.ts';
import { MessageReader, PeerCount, socketOptions } from '../connections/zmq.ts';
import type { Logger } from '../log.ts';
import { EngineDecoder } from './inspect-engine.ts';
import type { InspectFlags, Target } from './inspect-flags.ts';
import type { Line } from './inspect-line.ts';
import { envelopeLines, isPlaneMessage, zmqPlaneLines } from './inspect-plane.ts';
import { openMessageFile } from './recording-source.ts';

export interface InspectSource {
  /** Resolves at the end of the source; live ones have none. `onMessage` gets a message's lines. */
  run(onMessage: (lines: readonly Line[]) => void | Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export function sourceOf(
  target: Target,
  flags: InspectFlags,
  logger: Logger,
  ended: AbortSignal,
): InspectSource {
  if (target.kind === 'file') return fileSource(target.path, flags, logger, ended);
  if (target.kind === 'nats') return natsSource(target, flags, logger);
  const decoder = new EngineDecoder();
  const endpoint = formatZmqAddress(connectable(target.address));
  const socket = new Subscriber({
    ...socketOptions(formatZmqAddress(target.address), 0),
    receiveHighWaterMark: 0,
  });
  const peers = new PeerCount(socket, () => {
    logger.info({ endpoint }, peers.peers > 0 ? 'connected' : 'disconnected');
  });
  let reader: MessageReader | null = null;
  return {
    async run(onMessage): Promise<void> {
      socket.subscribe(flags.topic);
      socket.connect(endpoint);
      reader = new MessageReader(socket, (frames) => {
        void onMessage(isPlaneMessage(frames) ? zmqPlaneLines(frames) : decoder.lines(frames));
      });
      await new Promise<void>(() => undefined);
    },
    async close(): Promise<void> {
      if (reader === null) socket.close();
      else await reader.close(null);
    },
  };
}

function fileSource(
  path: string,
  { follow }: InspectFlags,
  logger: Logger,
  ended: AbortSignal,
): InspectSource {
  const file = openMessageFile(path);
  const decoder = new EngineDecoder();
  const onTorn = (reason: string): void => logger.warn({ reason }, 'the file is torn at its end');
  if (file.header !== null) logger.info({ header: file.header }, 'recording');
  return {
    async run(onMessage): Promise<void> {
      for await (const { atMs, frames } of file.messages({
        onTorn,
        ...(follow && { follow: ended }),
      })) {
        if (ended.aborted) return;
        await onMessage(decoder.lines(frames).map((line) => ({ at_ms: atMs, ...line })));
      }
    },
    async close(): Promise<void> {},
  };
}

function natsSource(
  { servers, subject }: Extract<Target, { kind: 'nats' }>,
  flags: InspectFlags,
  logger: Logger,
): InspectSource {
  let close: () => Promise<void> = async () => undefined;
  return {
    async run(onMessage): Promise<void> {
      const connection = await connect({
        name: 'kvrelay inspect',
        ...natsClientOptions(servers, flags),
      });
      close = () => connection.close();
      const subscription = connection.subscribe(subject);
      await connection.flush();
      logger.info({ servers, subject }, 'subscribed');
      for await (const message of subscription) {
        await onMessage(envelopeLines(message.data, { subject: message.subject }));
      }
    },
    close: () => close(),
  };
}
