/**
 * A stock frontend of Dynamo 1.6.1 that heeds worker load: it finds the relay's by discovery, and turns requests
 * away while the engine's page shows a full cache.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { servePage, vllmPage } from '../support/engine-page.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { makePlace } from './places.ts';
import { pause, RelayHere, startPeer } from './router-trial.ts';

/** As many as the worker's card has. */
const TOTAL_BLOCKS = '1000';
const OVERLOADED = 529;

describe.skipIf(!hasDynamo())('a stock frontend', () => {
  test.each(['zmq', 'broker', 'nats'] as const)('hears the load on %s', async (plane) => {
    const place = await makePlace({ eventPlane: plane });
    const port = await freePorts(1);
    await startPeer('dynamo_worker', [...place.shared, '--text']);
    await startPeer('dynamo_frontend', [...place.shared, `--http-port=${port}`]);

    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    let usage = 0.1;
    const page = await servePage((_, response) =>
      response.end(vllmPage({ 0: usage }, TOTAL_BLOCKS)),
    );
    await RelayHere.startIn(place, engine.endpoint, [`--engine-metrics=${page}`]);

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
        await pause(100);
      }
    };
    expect(await asked(200)).toBe(200);
    usage = 0.9;
    expect(await asked(OVERLOADED)).toBe(OVERLOADED);
    usage = 0.2;
    expect(await asked(200)).toBe(200);
  });
});
