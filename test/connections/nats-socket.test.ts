/** What the relay uses of the inside of NATS's client: that it is there, and keeps its order and its word. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { type NatsConnection as Client, type ConnectionOptions, connect, type Msg } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NatsConnection } from '../../src/connections/nats.ts';
import { isLinked, writeFrames } from '../../src/connections/nats-socket.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';
import { startTestServer } from '../support/nats-trial.ts';
import { eventually } from '../support/plane-collector.ts';

const require = createRequire(import.meta.url);

function frame(text: string): Buffer {
  return Buffer.from(`PUB order ${text.length}\r\n${text}\r\n`);
}

async function startClient(url: string): Promise<Client> {
  const client = await connect({ servers: url, reconnectTimeWait: 50, maxReconnectAttempts: -1 });
  onTestFinished(() => client.close());
  return client;
}

/** Texts on `order`, as they come to a client of its own. */
async function startSubscriber(url: string): Promise<{ texts: string[]; client: Client }> {
  const client = await startClient(url);
  const texts: string[] = [];
  const callback = (_error: unknown, { data }: Msg): void =>
    void texts.push(Buffer.from(data).toString());
  client.subscribe('order', { callback });
  await client.flush();
  return { texts, client };
}

function startConnection(url: string, options: ConnectionOptions = {}): NatsConnection {
  const client = { servers: url, ...options };
  const onError = (): void => undefined;
  const connection = new NatsConnection({ client, startupTimeoutMs: 60_000, onError });
  connection.start();
  onTestFinished(() => connection.stop());
  return connection;
}

test('package.json names the one version of the client that its inside is used of', () => {
  const { dependencies } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { dependencies: Record<string, string> };
  const installed = require('nats/package.json') as { version: string };
  expect(dependencies.nats).toBe(installed.version);
});

describe.skipIf(!natsServerAvailable())('frames to NATS', () => {
  test('leave in order with what the client itself is given', async () => {
    const { url } = await startTestServer();
    const { texts, client: subscriber } = await startSubscriber(url);
    const client = await startClient(url);
    client.publish('order', 'one');
    writeFrames(client, frame('two'));
    client.publish('order', 'three');
    client.publish('order', 'four');
    writeFrames(client, frame('five'));
    client.publish('order', 'six');
    await client.flush();
    await subscriber.flush();
    expect(texts).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
  });

  test('leave as they lie, without a copy: what is written over at once is sent written over', async () => {
    const server = await startTestServer();
    const { texts, client: subscriber } = await startSubscriber(server.url);
    const client = await startClient(server.url);
    server.kill('SIGSTOP');
    const large = Buffer.concat(Array.from({ length: 200 }, () => frame('x'.repeat(100_000))));
    writeFrames(client, large);
    const last = frame('before');
    writeFrames(client, last);
    last.write('behind', last.indexOf('before'));
    server.kill('SIGCONT');
    await client.flush();
    await subscriber.flush();
    expect(texts).toHaveLength(201);
    expect(texts.at(-1)).toBe('behind');
  });

  test('have all reached the server once a later confirm() resolves', async () => {
    const { url } = await startTestServer();
    const { texts, client: subscriber } = await startSubscriber(url);
    const connection = startConnection(url);
    await eventually(() => connection.isConnected);
    const many = Array.from({ length: 5000 }, (_, index) => `${index} ${'x'.repeat(500)}`);
    for (const text of many) expect(connection.write(frame(text))).toBe(true);
    await connection.confirm();
    await subscriber.flush();
    expect(texts).toEqual(many);
  });

  test('are not taken without a link, which is seen no later than by those who are told', async () => {
    const server = await startTestServer();
    const connection = startConnection(server.url);
    expect(connection.canWrite).toBe(false);
    expect(connection.write(frame('early'))).toBe(false);
    await eventually(() => connection.isConnected);
    expect(connection.canWrite).toBe(true);
    const couldWrite: boolean[] = [];
    const note = (): void => void couldWrite.push(connection.canWrite);
    connection.listen({ onConnected: note, onDisconnected: note });
    server.kill('SIGKILL');
    await server.exited;
    await eventually(() => !connection.isConnected);
    expect(connection.write(frame('meanwhile'))).toBe(false);
    const back = await startNatsServer({ port: server.port });
    onTestFinished(() => back.stop());
    const { texts, client: subscriber } = await startSubscriber(back.url);
    expect(await eventually(() => connection.isConnected)).toBe(true);
    expect(connection.write(frame('later'))).toBe(true);
    await connection.confirm();
    await subscriber.flush();
    expect(texts).toEqual(['later']);
    expect(couldWrite).toEqual([false, true]);
  });

  test('are not taken while a server has not yet let the client in', async () => {
    const server = await startTestServer();
    const connection = startConnection(server.url);
    await eventually(() => connection.isConnected);
    server.kill('SIGKILL');
    await server.exited;
    const heard: Buffer[] = [];
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => {
      sockets.add(socket.on('data', (bytes) => heard.push(bytes)));
      socket.write('INFO {"server_id":"mute","version":"2.10.0","max_payload":1048576}\r\n');
    });
    mute.listen(server.port, '127.0.0.1');
    onTestFinished(() => {
      mute.close();
      for (const socket of sockets) socket.destroy();
    });
    const text = (): string => Buffer.concat(heard).toString();
    expect(await eventually(() => text().includes('CONNECT'))).toBe(true);
    expect([connection.canWrite, connection.write(frame('too early'))]).toEqual([false, false]);
    expect(text()).not.toContain('PUB');
  });

  test('that a frozen server leaves in a full socket do not keep the link: no answer to pings ends it', async () => {
    const server = await startTestServer();
    const connection = startConnection(server.url, { pingInterval: 200, maxPingOut: 2 });
    await eventually(() => connection.isConnected);
    server.kill('SIGSTOP');
    const large = frame('x'.repeat(1_000_000));
    for (let at = 0; at < 20; at++) connection.write(large);
    expect(await eventually(() => !connection.isConnected, 15_000)).toBe(true);
    server.kill('SIGCONT');
    expect(await eventually(() => connection.connects === 2, 15_000)).toBe(true);
    expect(connection.write(frame('later'))).toBe(true);
    await connection.confirm();
  });

  test('are not taken from the moment on that the client closes', async () => {
    const { url } = await startTestServer();
    const client = await startClient(url);
    expect(isLinked(client)).toBe(true);
    const closing = client.close();
    expect(isLinked(client)).toBe(false);
    await closing;
  });
});
