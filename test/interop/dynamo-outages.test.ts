/**
 * A stock worker, a relay and a stock router whose NATS or etcd is away for 20 s, while a real engine goes
 * on: afterwards the router holds what the relay holds, and the relay what the engine did.
 */
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { etcdServerAvailable, startEtcdServer } from '../support/etcd-server.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { canRunTrials, EngineTrial, temporaryFolder } from './engine-trial.ts';
import { emptyRegistry } from './places.ts';
import { answersOf, pause } from './router-trial.ts';

const AWAY_MS = 20_000;
/** From a second before the outage to a few seconds after it. */
const STREAM_SECONDS = 26;
/** Of the relay's records: it runs out while etcd is away. */
const SHORT_LEASE = { ETCD_LEASE_TTL: '10' };
/** Of what stock processes write: they end with their lease. */
const LONG_LEASE = { ETCD_LEASE_TTL: '60' };

/** Events and queries: all waits in the outbox, and the source stays the same one. */
async function killNats(): Promise<void> {
  let server = await startNatsServer();
  onTestFinished(() => server.stop());
  const path = emptyRegistry();
  const discovery = ['--discovery=file', `--discovery-dir=${path}`, '--namespace=outages'];
  const planes = ['--event-plane=nats', '--request-plane=nats', `--nats-server=${server.url}`];
  const place = [...discovery, ...planes];
  const trial = await EngineTrial.start({ place, seconds: STREAM_SECONDS });
  await trial.startWorker();
  const relay = await trial.startRelay();
  const router = await trial.startRouter(relay);
  const before = (await relay.status()).ranks[0]?.publisher_id;
  trial.begin();
  await pause(1000);
  server.kill('SIGKILL');
  await server.exited;
  await pause(AWAY_MS);
  expect((await relay.status()).plane.outbox_messages).toBeGreaterThan(500);
  server = await startNatsServer({ port: server.port });
  await trial.expectSame(router, relay);
  const { ranks } = await relay.status();
  console.log(`NATS away: ${await answersOf(relay, 'events')} queries`);
  expect(ranks[0]?.publisher_id).toBe(before);
  expect(ranks[0]?.degraded).toEqual([]);
  expect(await relay.metric('kvrelay_plane_reconnects_total')).toBe(1);
}

async function startInEtcd(url: string, namespace: string, peersEnv = {}) {
  const discovery = ['--discovery=etcd', `--etcd-endpoints=${url}`, `--namespace=${namespace}`];
  const trial = await EngineTrial.start({
    place: [...discovery, '--event-plane=zmq'],
    seconds: STREAM_SECONDS,
    relayFlags: ['--plane-endpoint=tcp://127.0.0.1:0'],
    relayEnv: SHORT_LEASE,
    peersEnv,
  });
  await trial.startWorker();
  const relay = await trial.startRelay();
  const router = await trial.startRouter(relay);
  const publisherId = async (): Promise<string | undefined> =>
    (await relay.status()).ranks[0]?.publisher_id;
  return { trial, relay, router, publisherId };
}

/** The relay's records are gone when it is back; they are announced anew. */
async function freezeEtcd(): Promise<void> {
  const server = await startEtcdServer();
  onTestFinished(() => server.stop());
  const { trial, relay, router, publisherId } = await startInEtcd(server.url, 'frozen', LONG_LEASE);
  const before = await publisherId();
  trial.begin();
  await pause(1000);
  server.kill('SIGSTOP');
  await pause(AWAY_MS);
  server.kill('SIGCONT');
  await trial.expectSame(router, relay);
  expect(await publisherId()).not.toBe(before);
  expect(await answersOf(relay, 'tree_dump')).toBe(2);
}

/** Leases count anew when it is back: nothing is announced anew. */
async function killEtcd(): Promise<void> {
  const dataDirectory = join(temporaryFolder(), 'data');
  let server = await startEtcdServer({ dataDirectory });
  onTestFinished(() => server.stop());
  const { trial, relay, router, publisherId } = await startInEtcd(server.url, 'killed');
  const before = await publisherId();
  trial.begin();
  await pause(1000);
  server.kill('SIGKILL');
  await server.exited;
  await pause(AWAY_MS);
  server = await startEtcdServer({ port: server.port, dataDirectory });
  await trial.expectSame(router, relay);
  expect(await publisherId()).toBe(before);
}

/** At the same time, as each is a time of waiting. */
async function playAll(outages: readonly (() => Promise<void>)[]): Promise<void> {
  const played = await Promise.allSettled(outages.map((play) => play()));
  const failed = played.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

describe.skipIf(!canRunTrials())('away for 20 s under traffic', () => {
  test('NATS, killed, and etcd, frozen beyond the lease of the relay, and killed', async () => {
    const ofEtcd = etcdServerAvailable() ? [freezeEtcd, killEtcd] : [];
    await playAll([killNats, ...ofEtcd]);
  });
});
