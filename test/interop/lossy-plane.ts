/**
 * A relay, and routers behind an event plane that loses messages: a broker of ours on ZMQ; on NATS a server for the
 * relay, one for everybody else, and a client of ours that carries events across.
 */
import { connect } from 'nats';
import { onTestFinished } from 'vitest';
import { startNatsServer } from '../support/nats-server.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import type { DynamoPeer } from './dynamo-peers.ts';
import { emptyRegistry } from './places.ts';
import { RelayHere, startPeer } from './router-trial.ts';

/** Whether the message with this envelope is lost. */
type Drops = (envelope: Uint8Array) => boolean;

interface LossyPlane {
  readonly relayFlags: readonly string[];
  readonly peerFlags: readonly string[];
}

export interface LossyTrial {
  readonly relay: RelayHere;
  readonly startRouter: (...flags: string[]) => Promise<DynamoPeer>;
}

export interface TrialEngine {
  readonly endpoint: string;
  readonly blockSize: number;
  /** Ranks; one if absent. */
  readonly dpSize?: number;
}

/** Version and length in front of the envelope, in the last frame of a message. */
const FRAME_HEAD_BYTES = 5;

/** A stock worker and a relay; a router comes when it is told to. */
export async function startLossyTrial(
  plane: 'broker' | 'nats',
  drops: Drops,
  { endpoint, blockSize, dpSize = 1 }: TrialEngine,
  flags: readonly string[] = [],
): Promise<LossyTrial> {
  const { relayFlags, peerFlags } =
    plane === 'broker' ? await startLossyBroker(drops) : await startLossyBridge(drops);
  const folder = `--discovery-dir=${emptyRegistry()}`;
  const place = ['--discovery=file', folder, '--namespace=losses', `--block-size=${blockSize}`];
  const peers = [...place, ...peerFlags];
  const ranks = `--dp-size=${dpSize}`;
  await startPeer('dynamo_worker', [...peers, ranks]);
  const own = [ranks, `--engine-endpoint=${endpoint}`, ...flags];
  const relay = await RelayHere.start([...place, ...relayFlags, ...own]);
  const startRouter = (...more: string[]): Promise<DynamoPeer> =>
    startPeer('dynamo_router', [...peers, ...more]);
  return { relay, startRouter };
}

async function startLossyBroker(drops: Drops): Promise<LossyPlane> {
  const broker = await ZmqBroker.start();
  broker.drops = (frames) => drops(frames.at(-1)?.subarray(FRAME_HEAD_BYTES) ?? new Uint8Array());
  onTestFinished(() => broker.close());
  const flags = ['--event-plane=zmq', `--zmq-broker=${broker.url}`];
  return { relayFlags: flags, peerFlags: flags };
}

async function startLossyBridge(drops: Drops): Promise<LossyPlane> {
  const [inner, outer] = [await startNatsServer(), await startNatsServer()];
  onTestFinished(async () => {
    await inner.stop();
    await outer.stop();
  });
  const from = await connect({ servers: inner.url });
  const to = await connect({ servers: outer.url });
  onTestFinished(async () => {
    await from.close();
    await to.close();
  });
  from.subscribe('namespace.>', {
    callback: (_error, { subject, data }) => {
      if (!drops(data)) to.publish(subject, data);
    },
  });
  await from.flush();
  const flagsOf = ({ url }: { url: string }): string[] => [
    '--event-plane=nats',
    `--nats-server=${url}`,
  ];
  return { relayFlags: flagsOf(inner), peerFlags: flagsOf(outer) };
}
