/** A stock router and a relay whose queries and answers go over TLS, as Dynamo's processes have it. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { RouterClient } from '../support/fake-router.ts';
import { createCertificates } from '../support/nats-identities.ts';
import { eventually } from '../support/plane-collector.ts';
import { requestFrame } from '../support/router-requests.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer } from './router-trial.ts';

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
    const place = await makePlace({ eventPlane: 'zmq' });
    await startPeer('dynamo_worker', place.shared, env);
    const engine = await EngineStub.start();
    onTestFinished(() => engine.close());
    const own = [`--engine-endpoint=${engine.endpoint}`, ...place.relayOnly];
    const relay = await RelayHere.start([...place.shared, ...own], env);
    await engine.subscribed();
    await engine.send(batchFrames(batch([storeEvent([1, 2, 3])]), 0));
    expect(await eventually(() => relay.worker.status().ranks[0]?.blocks.device === 3)).toBe(true);

    const router = await startPeer('dynamo_router', place.shared, env);
    expect(await expectSame(router, relay)).toHaveLength(3);

    const port = Number(relay.worker.status().recovery?.endpoint?.split(':')[1]);
    const plain = await RouterClient.connect(port);
    plain.send(requestFrame('nowhere', Buffer.alloc(0)));
    expect(await eventually(() => plain.isClosed)).toBe(true);
    expect(plain.acknowledgements).toEqual([]);
  });
});
