import { expect, onTestFinished, test } from 'vitest';
import { EngineListener, type ListenerEvent } from '../../src/listener/engine-listener.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventually } from '../support/plane-collector.ts';
import { ReplayStub } from '../support/replay-stub.ts';
import { wireGreeting, wireMessage, wireReady } from '../support/zmtp-frames.ts';
import { ZmtpPeer } from '../support/zmtp-peer.ts';

const PATIENCE_MS = 200;
const NO_REPLAY = { sequencing: null, replayEndpoint: null };

async function listenTo(endpoint: string): Promise<ListenerEvent[]> {
  const events: ListenerEvent[] = [];
  const options = { endpoint, bind: false, topic: '', receiveHwm: 10, maxMessageBytes: 1024 };
  const onEvent = (event: ListenerEvent): void => void events.push(event);
  const listener = new EngineListener(
    { ...options, ...NO_REPLAY, compat: 'safe', patienceMs: PATIENCE_MS, onEvent },
    new RelayMetrics(),
  );
  onTestFinished(() => listener.stop(0));
  await listener.start();
  return events;
}

const SEQUENCING = {
  clearsOnGap: false,
  clearsOnRestart: true,
  holdBatches: 100,
  holdBytes: 1 << 20,
  idleMs: 1000,
  cooldownMs: 30_000,
};
const EMPTY = Buffer.alloc(0);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('O8: an engine that is not there is told once, and waited for', async () => {
  const endpoint = `tcp://127.0.0.1:${await freePorts(1)}`;
  const events = await listenTo(endpoint);
  await pause(4 * PATIENCE_MS);
  expect(events).toEqual([{ kind: 'absent', seconds: PATIENCE_MS / 1000 }]);
  const engine = await EngineStub.start(endpoint);
  onTestFinished(() => engine.close());
  await eventually(() => events.length === 2);
  expect(events[1]).toEqual({ kind: 'connected' });
});

test('O8: nothing is told where the engine is there in time', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const events = await listenTo(engine.endpoint);
  await eventually(() => events.length === 1);
  await pause(2 * PATIENCE_MS);
  expect(events).toEqual([{ kind: 'connected' }]);
});

test('an engine whose message was too large is linked again', async () => {
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const events = await listenTo(engine.endpoint);
  await engine.subscribed();
  await engine.send([Buffer.alloc(0), Buffer.alloc(8), Buffer.alloc(2000)]);
  await eventually(() => events.length === 3, 20_000);
  expect(events.map(({ kind }) => kind)).toEqual(['connected', 'disconnected', 'connected']);
}, 30_000);

test('what left last is known behind messages that are none, when a link is lost', async () => {
  const good = Array.from({ length: 5 }, (_, index) => {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(BigInt(index));
    return [EMPTY, number, Buffer.from(`batch ${index}`)];
  });
  // Enough of them to be read to all the memory that there is.
  const malformed = Array.from({ length: 40 }, () => wireMessage(EMPTY, Buffer.alloc(60_000, 65)));
  const peer = await ZmtpPeer.start((socket) => {
    socket.write(Buffer.concat([wireGreeting(), wireReady('PUB')]));
    if (peer.sockets.length > 1) return;
    const batches = good.map((frames) => wireMessage(...frames));
    socket.end(Buffer.concat([...malformed.slice(0, 10), ...batches, ...malformed]));
  });
  const replayEndpoint = `tcp://127.0.0.1:${await freePorts(1)}`;
  const replays = await ReplayStub.start(replayEndpoint);
  replays.keep(...good);
  const kinds: string[] = [];
  const metrics = new RelayMetrics();
  const listener = new EngineListener(
    {
      endpoint: `tcp://127.0.0.1:${peer.port}`,
      bind: false,
      topic: '',
      receiveHwm: 1000,
      maxMessageBytes: 1 << 20,
      compat: 'safe',
      sequencing: SEQUENCING,
      replayEndpoint,
      onEvent: ({ kind }) => kinds.push(kind),
    },
    metrics,
  );
  onTestFinished(() => listener.stop(0));
  await listener.start();
  expect(await eventually(() => replays.requests.includes(4), 20_000)).toBe(true);
  expect(await eventually(() => metrics.engineReplays.complete >= 2, 20_000)).toBe(true);
  expect(metrics.malformed.frames).toBe(50);
  expect(kinds).not.toContain('restart');
}, 60_000);
