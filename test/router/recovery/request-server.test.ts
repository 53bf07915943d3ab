import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecoveryCounts } from '../../../src/metrics/recovery-counts.ts';
import { RecoveryListenError, RequestServer } from '../../../src/router/recovery/request-server.ts';
import { RouterClient } from '../../support/fake-router.ts';
import { eventually } from '../../support/plane-collector.ts';
import { PATH, startRecovery, WORKER } from '../../support/recovery-trial.ts';
import { requestFrame, requestPayload } from '../../support/router-requests.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('each request is acknowledged once, in order, whether or not it is answered', async () => {
  const { port, router, counts } = await startRecovery();
  const client = await RouterClient.connect(port);
  const good = requestFrame(
    PATH,
    requestPayload({ address: router.address }, { worker_id: WORKER }),
  );
  const unknown = requestFrame('nowhere', Buffer.alloc(0));
  const unreadable = requestFrame(PATH, Buffer.from('not two parts'));
  client.send(Buffer.concat([good, unknown, good, unreadable, good]));
  await client.acknowledged(5);
  const [first, second, third, fourth, fifth] = client.acknowledgements;
  expect([first, third, fifth]).toEqual(['', '', '']);
  expect(second).toBe('Server unavailable: nothing is served at this path');
  expect(fourth).toMatch(/^Server unavailable: the request cannot be read: /);
  expect(await eventually(() => router.responses.filter((one) => one.isClosed).length === 3)).toBe(
    true,
  );
  expect(counts.refusedRequests).toMatchObject({ unknown_path: 1, malformed_request: 1 });
  // The connection stays: a router pools it.
  client.send(good);
  await client.acknowledged(6);
  expect(client.acknowledgements[5]).toBe('');
  client.close();
});

test('an acknowledgement does not wait for the answer', async () => {
  const { port, router, index } = await startRecovery();
  index.prepare = () => new Promise(() => undefined);
  const client = await RouterClient.connect(port);
  client.send(
    requestFrame(PATH, requestPayload({ address: router.address }, { worker_id: WORKER })),
  );
  await client.acknowledged(1);
  expect(client.acknowledgements).toEqual(['']);
  client.close();
});

test('a malformed frame closes that connection alone, after the acknowledgements before it', async () => {
  const { port, router, counts } = await startRecovery();
  const good = requestFrame(
    PATH,
    requestPayload({ address: router.address }, { worker_id: WORKER }),
  );
  const [bad, other] = [await RouterClient.connect(port), await RouterClient.connect(port)];
  bad.send(Buffer.concat([good, Buffer.alloc(32, 0xff), good]));
  expect(await eventually(() => bad.isClosed)).toBe(true);
  expect(bad.acknowledgements).toEqual(['']);
  expect(counts.droppedClients.malformed_frame).toBe(1);
  other.send(good);
  await other.acknowledged(1);
  expect(other.acknowledgements).toEqual(['']);
  expect(counts.clients).toBe(1);
  other.close();
  expect(await eventually(() => counts.clients === 0)).toBe(true);
});

test('who sends nothing, or a frame in drops, is closed in time; who asked may be quiet for longer', async () => {
  const server = { frameTimeoutMs: 150, idleTimeoutMs: 600, sweepMs: 10 };
  const { port, counts } = await startRecovery({ server });
  const silent = await RouterClient.connect(port);
  const slow = await RouterClient.connect(port);
  const asker = await RouterClient.connect(port);
  asker.send(requestFrame('nowhere', Buffer.alloc(0)));
  const bytes = requestFrame('nowhere', Buffer.alloc(1000));
  for (let at = 0; at < 40 && !slow.isClosed; at++) {
    slow.send(bytes.subarray(at, at + 1));
    await pause(10);
  }
  expect(silent.isClosed).toBe(true);
  expect(slow.isClosed).toBe(true);
  expect(asker.isClosed).toBe(false);
  expect(counts.droppedClients).toMatchObject({ silent: 1, slow_frame: 1, idle: 0 });
  expect(await eventually(() => asker.isClosed, 2000)).toBe(true);
  expect(counts.droppedClients.idle).toBe(1);
});

test('a crowd that never asks pushes nobody out who did', async () => {
  const { port, counts } = await startRecovery({ server: { maxClients: 4 } });
  const asker = await RouterClient.connect(port);
  asker.send(requestFrame('nowhere', Buffer.alloc(0)));
  await asker.acknowledged(1);
  const crowd = await Promise.all(Array.from({ length: 20 }, () => RouterClient.connect(port)));
  expect(await eventually(() => crowd.filter(({ isClosed }) => isClosed).length === 17)).toBe(true);
  expect(asker.isClosed).toBe(false);
  expect(counts.clients).toBe(4);
  expect(counts.droppedClients.too_many).toBe(17);
  for (const client of [asker, ...crowd]) client.close();
});

test('a client that reads no acknowledgements is closed', async () => {
  const { port, counts } = await startRecovery({ server: { maxUnreadBytes: 1024 } });
  const client = await RouterClient.connect(port);
  client.socket.pause();
  const many = Buffer.concat(
    Array.from({ length: 2000 }, () => requestFrame('x', Buffer.alloc(0))),
  );
  const flood = setInterval(() => client.send(many), 1);
  expect(await eventually(() => counts.droppedClients.unread_acknowledgements === 1)).toBe(true);
  clearInterval(flood);
  client.close();
});

test('the port is given back at the stop, with clients connected', async () => {
  const counts = new RecoveryCounts();
  const options = { host: '127.0.0.1', accept: () => '', counts, onError: () => undefined };
  const first = new RequestServer({ ...options, port: 0 });
  const port = await first.start();
  const client = await RouterClient.connect(port);
  const second = new RequestServer({ ...options, port });
  await expect(second.start()).rejects.toThrow(RecoveryListenError);
  await first.stop();
  await first.stop();
  const third = new RequestServer({ ...options, port });
  expect(await third.start()).toBe(port);
  await third.stop();
  expect(await eventually(() => client.isClosed)).toBe(true);
});

test('no bytes at all make it fall: it still answers after each of them', {
  timeout: 60_000,
}, async () => {
  const { port, router, errors, counts } = await startRecovery();
  const payload = requestPayload({ address: router.address }, { worker_id: WORKER });
  const good = requestFrame(PATH, payload);
  // Everything but the address, which would send the answer to strangers.
  const addressAt = good.indexOf(router.address);
  const elsewhere = fc.nat(good.length - 1).filter((at) => Math.abs(at - addressAt - 8) > 24);
  const mutated = fc
    .tuple(elsewhere, fc.integer({ min: 0, max: 255 }), fc.nat(good.length))
    .map(([at, byte, end]) => {
      const bytes = Buffer.from(good);
      bytes[at] = byte;
      return bytes.subarray(0, end);
    });
  const garbage = fc.uint8Array({ maxLength: 2000 });
  const payloads = fc.uint8Array({ maxLength: 400 }).map((bytes) => requestFrame(PATH, bytes));
  await fc.assert(
    fc.asyncProperty(fc.oneof(mutated, garbage, payloads), async (bytes) => {
      const client = await RouterClient.connect(port);
      client.send(bytes);
      client.socket.end();
      await eventually(() => client.isClosed);
    }),
    { numRuns: 300 },
  );
  const { acknowledgement, response } = await router.ask(port, PATH, { worker_id: WORKER });
  expect(acknowledgement).toBe('');
  expect(response?.messages.length).toBeGreaterThanOrEqual(3);
  expect(errors).toEqual([]);
  expect(await eventually(() => counts.clients === 0)).toBe(true);
});
