/**
 * A stock frontend of Dynamo 1.6.1 that heeds worker load: it finds the relay's by discovery, and turns requests
 * away while the engine's page shows a full cache.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { servePage, vllmPage } from '../support/engine-page.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { configOf } from '../support/worker-config.ts';
import { ZmqBroker } from '../support/zmq-broker.ts';
import { DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { emptyRegistry } from './stock-trial.ts';

/** As many as the worker's card has. */
const TOTAL_BLOCKS = '1000';
const OVERLOADED = 529;

async function planeFlags(plane: 'zmq' | 'broker' | 'nats'): Promise<string[]> {
  if (plane === 'zmq') return ['--event-plane=zmq'];
  if (plane === 'broker') {
    const broker = await ZmqBroker.start();
    onTestFinished(() => broker.close());
    return ['--event-plane=zmq', `--zmq-broker=${broker.url}`];
  }
  const server = await startNatsServer();
  onTestFinished(() => server.stop());
  return ['--event-plane=nats', `--nats-server=${server.url}`];
}

describe.skipIf(!hasDynamo())('a stock frontend', () => {
  test.each(['zmq', 'broker', 'nats'] as const)('hears the load on %s', async (plane) => {
    const place = [
      '--discovery=file',
      `--discovery-dir=${emptyRegistry()}`,
      `--namespace=interop-load-${plane}`,
      '--block-size=4',
      ...(await planeFlags(plane)),
    ];
    const startPeer = async (
      program: 'dynamo_worker' | 'dynamo_frontend',
      ...flags: string[]
    ): Promise<void> => {
      const peer = await DynamoPeer.start(program, [...place, ...flags]);
      onTestFinished(() => peer.stop());
    };
    const port = await freePorts(1);
    await startPeer('dynamo_worker', '--text');
    await startPeer('dynamo_frontend', `--http-port=${port}`);

    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    let usage = 0.1;
    const page = await servePage((_, response) =>
      response.end(vllmPage({ 0: usage }, TOTAL_BLOCKS)),
    );
    const zmq = plane === 'zmq' ? ['--plane-endpoint=tcp://127.0.0.1:0'] : [];
    const own = [`--engine-endpoint=${engine.endpoint}`, '--http=off', `--engine-metrics=${page}`];
    const logger = createLogger({ level: 'silent', format: 'json' });
    const relay = createWorker(configOf(...place, ...own, ...zmq), { logger });
    onTestFinished(() => relay.stop());
    await relay.start();

    const ask = async (): Promise<number> => {
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'well?' }] });
      const headers = { 'content-type': 'application/json' };
      const url = `http://127.0.0.1:${port}/v1/chat/completions`;
      const answer = await fetch(url, { method: 'POST', headers, body }).catch(() => null);
      await answer?.arrayBuffer();
      return answer?.status ?? 0;
    };
    /** The status of the last request, which is the one wanted as soon as one is. */
    const asked = async (wanted: number): Promise<number> => {
      const deadlineMs = performance.now() + 15_000;
      for (;;) {
        const status = await ask();
        if (status === wanted || performance.now() > deadlineMs) return status;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    expect(await asked(200)).toBe(200);
    usage = 0.9;
    expect(await asked(OVERLOADED)).toBe(OVERLOADED);
    usage = 0.2;
    expect(await asked(200)).toBe(200);
  });
});
