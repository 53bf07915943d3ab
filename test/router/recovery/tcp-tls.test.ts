/** Queries and answers over TLS: who gets in, whom answers go to, and what strangers can do. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { RecoveryCounts } from '../../../src/metrics/recovery-counts.ts';
import { RequestServer } from '../../../src/router/recovery/request-server.ts';
import { ResponseStream } from '../../../src/router/recovery/response-stream.ts';
import { readTcpTls, type TcpTlsAccess } from '../../../src/router/recovery/tcp-tls.ts';
import { type Certificates, createCertificates } from '../../support/nats-identities.ts';
import { eventually } from '../../support/plane-collector.ts';
import { requestFrame } from '../../support/router-requests.ts';

const PLAIN: TcpTlsAccess = {
  tcpTlsCertPath: null,
  tcpTlsKeyPath: null,
  tcpTlsClientCaCertPath: null,
  tcpTlsCaCertPath: null,
  tcpTlsInsecure: false,
  tcpTlsClientCertPath: null,
  tcpTlsClientKeyPath: null,
  tcpTlsServerName: null,
  tcpTlsHandshakeTimeoutSecs: 30,
};

interface Listener {
  readonly port: number;
  readonly counts: RecoveryCounts;
  readonly server: RequestServer;
}

async function listen(access: Partial<TcpTlsAccess>): Promise<Listener> {
  const counts = new RecoveryCounts();
  const server = new RequestServer({
    host: '127.0.0.1',
    port: 0,
    accept: () => '',
    counts,
    onError: () => undefined,
    tls: readTcpTls({ ...PLAIN, ...access }).listener,
  });
  onTestFinished(() => server.stop());
  return { port: await server.start(), counts, server };
}

/** The acknowledgement in hex; `closed` where there is none. */
async function ask(port: number, options: object): Promise<string> {
  const socket: TLSSocket = connectTls({ host: '127.0.0.1', port, ...options });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.write(requestFrame('path', Buffer.alloc(0)));
  const acknowledged = once(socket, 'data').then(([bytes]) => (bytes as Buffer).toString('hex'));
  const closed = once(socket, 'close').then(() => 'closed');
  return await Promise.race([acknowledged.catch(() => 'closed'), closed.catch(() => 'closed')]);
}

function listenerFiles({ serverCert, serverKey }: Certificates): Partial<TcpTlsAccess> {
  return { tcpTlsCertPath: serverCert, tcpTlsKeyPath: serverKey };
}

test('a router that trusts the authority is answered; one without TLS is closed and counted', async () => {
  const files = createCertificates();
  const { port, counts } = await listen(listenerFiles(files));
  expect(await ask(port, { ca: readFileSync(files.caCert) })).toBe('00000000');
  const plain = connect(port, '127.0.0.1');
  plain.on('error', () => undefined);
  plain.write(requestFrame('path', Buffer.alloc(0)));
  await once(plain, 'close');
  expect(await eventually(() => counts.droppedClients.handshake === 1)).toBe(true);
});

test('where routers have to show a certificate, one without is not answered', async () => {
  const files = createCertificates();
  const { port } = await listen({ ...listenerFiles(files), tcpTlsClientCaCertPath: files.caCert });
  const ca = readFileSync(files.caCert);
  expect(await ask(port, { ca })).toBe('closed');
  const [cert, key] = [readFileSync(files.clientCert), readFileSync(files.clientKey)];
  expect(await ask(port, { ca, cert, key })).toBe('00000000');
});

test('handshakes that strangers leave open keep no router out, and no stop waiting', async () => {
  const files = createCertificates();
  const { port, counts, server } = await listen(listenerFiles(files));
  const strangers = Array.from({ length: 100 }, () => connect(port, '127.0.0.1'));
  for (const stranger of strangers) stranger.on('error', () => undefined);
  onTestFinished(() => {
    for (const stranger of strangers) stranger.destroy();
  });
  expect(await eventually(() => counts.droppedClients.too_many === 36)).toBe(true);
  expect(await ask(port, { ca: readFileSync(files.caCert) })).toBe('00000000');
  const startMs = performance.now();
  await server.stop();
  expect(performance.now() - startMs).toBeLessThan(5000);
});

test.each([
  ['by its address', {}, 'handed over'],
  ['by a name that its certificate has', { tcpTlsServerName: 'localhost' }, 'handed over'],
  ['not by a name that it has not', { tcpTlsServerName: 'other' }, 'unreachable'],
  [
    'whatever it shows, where all is taken',
    { tcpTlsServerName: 'other', tcpTlsInsecure: true },
    'handed over',
  ],
  ['not where its authority is another', { tcpTlsCaCertPath: 'other' }, 'unreachable'],
])('an answer goes to a router %s', async (_, access, outcome) => {
  const files = createCertificates();
  const others = createCertificates();
  const router = createServer(
    { cert: readFileSync(files.serverCert), key: readFileSync(files.serverKey) },
    (socket) => {
      socket.on('error', () => undefined);
      received.push(socket);
    },
  );
  const received: TLSSocket[] = [];
  router.listen(0, '127.0.0.1');
  await once(router, 'listening');
  onTestFinished(() => {
    for (const socket of received) socket.destroy();
    router.close();
  });
  const authority = 'tcpTlsCaCertPath' in access ? others.caCert : files.caCert;
  const { answers } = readTcpTls({ ...PLAIN, ...access, tcpTlsCaCertPath: authority });
  const { port } = router.address() as AddressInfo;
  const callBack = { host: '127.0.0.1', port, subject: 's' };
  const stream = new ResponseStream(callBack, undefined, answers);
  onTestFinished(() => stream.destroy());
  const result = await stream
    .opened()
    .then(() => stream.answer([Buffer.from('x')], 'msgpack'))
    .then(() => 'handed over')
    .catch((error: unknown) => (error as { reason: string }).reason);
  expect(result).toBe(outcome);
});
