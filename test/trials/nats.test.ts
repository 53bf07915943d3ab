/** Trials of the NATS plane: servers that come late or go, rates, slow routers, and who is let in. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, credsAuthenticator, nkeyAuthenticator } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EngineStub } from '../support/engine-stub.ts';
import { FaultProcess } from '../support/fault-process.ts';
import { Flood } from '../support/flood.ts';
import {
  createCertificates,
  createCredentials,
  createNkeyUser,
} from '../support/nats-identities.ts';
import { natsServerAvailable } from '../support/nats-server.ts';
import {
  NatsRouter,
  type NatsTrial,
  natsFlags,
  startNatsTrial,
  startTestServer,
} from '../support/nats-trial.ts';
import { f, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';

const LATE_SERVER_MS = scaled(800, 60_000);
const OUTAGE_MS = scaled(800, 300_000);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One store goes all the way to a router that the server lets in. */
async function relaysOne(
  { engine, connected }: NatsTrial,
  router: ConnectionOptions,
): Promise<void> {
  await connected();
  const routers = await NatsRouter.start(router);
  await engine.send(f(0, [St(101)]));
  await routers.reaches(1);
}

describe.skipIf(!natsServerAvailable())('NATS', () => {
  test(
    'N4: a server that comes late or is away for long is waited for, and the process lives on',
    async () => {
      let server = await startTestServer();
      await server.stop();
      const engine = await EngineStub.start();
      onTestFinished(() => engine.close());
      const relay = await FaultProcess.started(natsFlags(engine, server));
      await engine.subscribed();
      await pause(LATE_SERVER_MS);
      expect((await relay.status()).plane.connected).toBe(false);

      server = await startTestServer({ port: server.port });
      const routers = await NatsRouter.start({ servers: server.url });
      await relay.reaches((_, { plane }) => plane.connected);
      await engine.send(f(0, [St(101)]));
      await routers.reaches(1);
      // What the server had not confirmed would come once more.
      await relay.reaches((_, { plane }) => plane.outbox_messages === 0);

      server.kill('SIGKILL');
      await server.exited;
      await relay.reaches((_, { plane }) => !plane.connected);
      await engine.send(f(1, [St(102)]));
      await pause(OUTAGE_MS);
      server = await startTestServer({ port: server.port });
      await relay.reaches((_, { plane }) => plane.connected);
      await engine.send(f(2, [St(103)]));
      await routers.reaches(3);
      expect(routers.ids).toEqual([1, 2, 3]);
      expect(await relay.terminate()).toMatchObject({ code: 0 });
    },
    LATE_SERVER_MS + OUTAGE_MS + 60_000,
  );

  test('N12: messages are not confirmed one by one: more than 5000 go through in a second', async () => {
    const count = scaled(20_000, 50_000);
    const server = await startTestServer();
    const routers = await NatsRouter.start({ servers: server.url });
    const engine = await Flood.start({ count, blocks: 1 });
    const relay = await FaultProcess.ready(natsFlags(engine, server));
    const startMs = performance.now();
    expect(await engine.send()).toBe(count);
    await routers.reaches(count);
    const seconds = (performance.now() - startMs) / 1000;
    expect(routers.ids).toEqual(Array.from({ length: count }, (_, index) => index + 1));
    expect(count / seconds).toBeGreaterThan(5000);
    expect(await relay.metric('kvrelay_published_events_total', { event_type: 'stored' })).toBe(
      count,
    );
  });

  test('N15: a router that never reads is cut off by the server, and only its own loss', async () => {
    const [count, blocks] = [3000, 128];
    const server = await startTestServer({ extraConfig: 'write_deadline: "300ms"' });
    const deaf = connectTcp(server.port, '127.0.0.1');
    onTestFinished(() => void deaf.destroy());
    deaf.on('error', () => undefined);
    deaf.write('CONNECT {"verbose":false}\r\nSUB namespace.> 1\r\nPING\r\n');
    await once(deaf, 'data');
    deaf.pause();

    const routers = await NatsRouter.start({ servers: server.url });
    const engine = await Flood.start({ count, blocks });
    const relay = await FaultProcess.ready(natsFlags(engine, server));
    await engine.send();
    await routers.reaches(count);
    const { plane, ranks } = await relay.reaches((_, status) => status.plane.outbox_messages === 0);
    expect(plane.connected).toBe(true);
    expect(ranks[0]?.degraded).toEqual([]);
    expect(await relay.metric('kvrelay_plane_disconnects_total')).toBe(0);
    expect(await relay.metric('kvrelay_publish_failures_total')).toBe(0);

    // Longer than the server waits for it.
    await pause(1000);
    let bytes = 0;
    deaf.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const closed = once(deaf, 'close');
    deaf.resume();
    await closed;
    // What the kernel held for it, and no more.
    expect(bytes).toBeLessThan(await relay.metric('kvrelay_published_bytes_total'));
  });

  test('user and password, a token: the server lets the relay in with the right one', async () => {
    const byName = await startTestServer({
      extraConfig: 'authorization { user: relay, password: open }',
    });
    const name = { NATS_AUTH_USERNAME: 'relay', NATS_AUTH_PASSWORD: 'open' };
    const router = { servers: byName.url, user: 'relay', pass: 'open' };
    await relaysOne(await startNatsTrial(byName.url, name), router);

    const byToken = await startTestServer({ extraConfig: 'authorization { token: "t0ken" }' });
    const trial = await startNatsTrial(byToken.url, { NATS_AUTH_TOKEN: 't0ken' });
    await relaysOne(trial, { servers: byToken.url, token: 't0ken' });
  });

  test('an nkey: the server lets the relay in with the right seed', async () => {
    const { seed, publicKey } = createNkeyUser();
    const server = await startTestServer({
      extraConfig: `authorization { users: [ { nkey: ${publicKey} } ] }`,
    });
    const authenticator = nkeyAuthenticator(Buffer.from(seed));
    const trial = await startNatsTrial(server.url, { NATS_AUTH_NKEY: seed });
    await relaysOne(trial, { servers: server.url, authenticator });
  });

  test('a credentials file: the server lets the relay in as that user', async () => {
    const { serverConfig, credentialsFile } = createCredentials();
    const server = await startTestServer({ extraConfig: serverConfig });
    const authenticator = credsAuthenticator(readFileSync(credentialsFile));
    const trial = await startNatsTrial(server.url, { NATS_AUTH_CREDENTIALS_FILE: credentialsFile });
    await relaysOne(trial, { servers: server.url, authenticator });
  });

  test('a refused password is waited out: once the server takes it, what was held goes', async () => {
    const refusing = await startTestServer({
      extraConfig: 'authorization { user: relay, password: other }',
    });
    const { worker, engine, logs, connected } = await startNatsTrial(refusing.url, {
      NATS_AUTH_USERNAME: 'relay',
      NATS_AUTH_PASSWORD: 'open',
    });
    await engine.send(f(0, [St(101)]));
    await pause(scaled(700, 20_000));
    expect(worker.status().plane).toMatchObject({ connected: false, outbox_messages: 1 });
    expect(worker.ready()).toMatchObject({ ready: false, waitingFor: ['the nats plane'] });
    expect(logs.some(({ reason }) => /authorization/i.test(String(reason)))).toBe(true);

    await refusing.stop();
    const taking = await startTestServer({
      port: refusing.port,
      extraConfig: 'authorization { user: relay, password: open }',
    });
    await connected();
    const routers = await NatsRouter.start({ servers: taking.url, user: 'relay', pass: 'open' });
    await engine.send(f(1, [St(102)]));
    await routers.reaches(1);
    expect(routers.ids.at(-1)).toBe(2);
  });

  test('a password withdrawn while connected is waited out, too', async () => {
    const first = await startTestServer({
      extraConfig: 'authorization { user: relay, password: open }',
    });
    const env = { NATS_AUTH_USERNAME: 'relay', NATS_AUTH_PASSWORD: 'open' };
    const { worker, engine, connected } = await startNatsTrial(first.url, env);
    await connected();
    await first.stop();
    const { port } = first;
    const other = await startTestServer({
      port,
      extraConfig: 'authorization { user: relay, password: x }',
    });
    await engine.send(f(0, [St(101)]));
    await pause(scaled(1800, 20_000));
    expect(worker.status().plane).toMatchObject({ connected: false, outbox_messages: 1 });

    await other.stop();
    const again = await startTestServer({
      port,
      extraConfig: 'authorization { user: relay, password: open }',
    });
    const routers = await NatsRouter.start({ servers: again.url, user: 'relay', pass: 'open' });
    await connected();
    await routers.reaches(1);
    expect(routers.ids).toEqual([1]);
  });

  test('TLS: the server is checked against the authority given, and gets our certificate', async () => {
    const { caCert, serverCert, serverKey, clientCert, clientKey } = createCertificates();
    const tls = `cert_file: "${serverCert}", key_file: "${serverKey}", ca_file: "${caCert}"`;
    const server = await startTestServer({ extraConfig: `tls { ${tls}, verify: true }` });
    const servers = `localhost:${server.port}`;
    const client = { NATS_TLS_CLIENT_CERT_PATH: clientCert, NATS_TLS_CLIENT_KEY_PATH: clientKey };

    const unchecked = await startNatsTrial(`tls://${servers}`, client);
    const trial = await startNatsTrial(`tls://${servers}`, {
      ...client,
      NATS_TLS_CA_CERT_PATH: caCert,
    });
    const files = { caFile: caCert, certFile: clientCert, keyFile: clientKey };
    await relaysOne(trial, { servers, tls: files });
    expect(unchecked.worker.status().plane.connected).toBe(false);
  });

  test('TLS: NATS_TLS_INSECURE takes any certificate', async () => {
    const { caCert, serverCert, serverKey } = createCertificates();
    const server = await startTestServer({
      extraConfig: `tls { cert_file: "${serverCert}", key_file: "${serverKey}" }`,
    });
    const servers = `localhost:${server.port}`;
    const trial = await startNatsTrial(`tls://${servers}`, { NATS_TLS_INSECURE: '1' });
    await relaysOne(trial, { servers, tls: { caFile: caCert } });
  });
});
