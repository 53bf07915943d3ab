/** A stock router and a relay whose queries and answers go over TLS, as Dynamo's processes have it. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { RouterClient } from '../support/fake-router.ts';
import { createCertificates } from '../support/nats-identities.ts';
import { eventually } from '../support/plane-collector.ts';
import { requestFrame } from '../support/router-requests.ts';
import { DynamoPeer, hasDynamo } from './dynamo-peers.ts';
import { emptyRegistry } from './stock-trial.ts';

const MTLS = ['CLIENT_CA_CERT_PATH', 'CLIENT_CERT_PATH', 'CLIENT_KEY_PATH'];

describe.skipIf(!hasDynamo())('a stock router', () => {
  test.each([
    ['servers show a certificate', MTLS],
    ['both sides show one', []],
  ])('gets a dump where %s', async (_, without) => {
    const { caCert, serverCert, serverKey, clientCert, clientKey } = createCertificates();
    const files = {
      CERT_PATH: serverCert,
      KEY_PATH: serverKey,
      CA_CERT_PATH: caCert,
      SERVER_NAME: 'localhost',
      CLIENT_CA_CERT_PATH: caCert,
      CLIENT_CERT_PATH: clientCert,
      CLIENT_KEY_PATH: clientKey,
    };
    const given = Object.entries(files).filter(([name]) => !without.includes(name));
    const env = Object.fromEntries(given.map(([name, file]) => [`DYN_TCP_TLS_${name}`, file]));
    const place = [
      '--discovery=file',
      `--discovery-dir=${emptyRegistry()}`,
      '--namespace=interop-tls',
      '--block-size=4',
      '--event-plane=zmq',
    ];
    const startPeer = async (program: 'dynamo_worker' | 'dynamo_router'): Promise<DynamoPeer> => {
      const peer = await DynamoPeer.start(program, place, env);
      onTestFinished(() => peer.stop());
      return peer;
    };
    await startPeer('dynamo_worker');
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const own = [`--engine-endpoint=${engine.endpoint}`, '--http=off'];
    const config = loadConfig({
      argv: [...place, ...own, '--plane-endpoint=tcp://127.0.0.1:0'],
      env,
      readFile: (path) => readFileSync(path, 'utf8'),
      random: randomBytes,
    });
    const relay = createWorker(config, {
      logger: createLogger({ level: 'silent', format: 'json' }),
    });
    onTestFinished(() => relay.stop());
    await relay.start();
    await engine.subscribed();
    await engine.send(batchFrames(batch([storeEvent([1, 2, 3])]), 0));
    expect(await eventually(() => relay.status().ranks[0]?.blocks.device === 3)).toBe(true);

    const router = await startPeer('dynamo_router');
    await eventually(() => router.index.length === 3);
    expect(router.index.map((row) => Number(row[4])).sort((a, b) => a - b)).toEqual([1, 2, 3]);

    const port = Number(relay.status().recovery?.endpoint?.split(':')[1]);
    const plain = await RouterClient.connect(port);
    plain.send(requestFrame('nowhere', Buffer.alloc(0)));
    expect(await eventually(() => plain.isClosed)).toBe(true);
    expect(plain.acknowledgements).toEqual([]);
  });
});
