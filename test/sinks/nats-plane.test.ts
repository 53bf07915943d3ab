/** Messages that leave from the memory they were written to: each comes whole, whatever the server does meanwhile. */
import { connect } from 'nats';
import { describe, expect, test, vi } from 'vitest';
import { createCertificates } from '../support/nats-identities.ts';
import { PlainSubscriber, type PlaneTrial, startPlanes } from '../support/nats-planes.ts';
import { natsServerAvailable } from '../support/nats-server.ts';
import { startTestServer } from '../support/nats-trial.ts';
import { eventually } from '../support/plane-collector.ts';
import { decodeEnvelope } from '../support/scenarios.ts';

const SUBJECT = 'namespace.dynamo.component.backend.endpoint.generate.kv-events';
/** More than one plane may have on its way, and all together more than the kernel takes for a server that does not read. */
const SUBJECTS = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${SUBJECT}.${name}`);
const MUCH = 6 << 20;

/** Numbers of what has come, in order; throws where a byte is another than was published. */
function numbersOf({ published }: PlaneTrial, received: readonly Buffer[]): number[] {
  return received.map((envelope) => {
    const { sequence } = decodeEnvelope(envelope);
    if (published[sequence]?.equals(envelope)) return sequence;
    throw new Error(`message ${sequence} has come with other bytes`);
  });
}

function isRising(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > (numbers[index - 1] as number));
}

/** Every message once, or again where that is allowed; the first of each in order. */
function expectAll(trial: PlaneTrial, received: readonly Buffer[]): void {
  const firsts = [...new Set(numbersOf(trial, received))];
  expect(firsts).toEqual(trial.published.map((_, sequence) => sequence));
}

async function comesToAll(subscriber: PlainSubscriber, trials: PlaneTrial[]): Promise<void> {
  for (const trial of trials) await trial.isConfirmed();
  await subscriber.settle();
}

describe.skipIf(!natsServerAvailable())('NatsPlane', () => {
  test('a plain subscriber gets what was published, once and in order, on short subjects and long', async () => {
    const { url: servers } = await startTestServer();
    const subscriber = await PlainSubscriber.start({ servers });
    const subjects = ['a', SUBJECT, `b.${'x'.repeat(3000)}`, 'ü.é'];
    const planes = subjects.map((subject) => ({ subject }));
    const { connection, trials } = await startPlanes({ servers }, ...planes);
    for (let round = 0; round < 10; round++) {
      for (const trial of trials) trial.publish(1 << 19);
      await comesToAll(subscriber, trials);
    }
    for (const trial of trials) {
      const received = subscriber.on(trial.subject);
      expect(received).toHaveLength(trial.published.length);
      expectAll(trial, received);
    }
    expect(connection.disconnects).toBe(0);
  });

  test('with TLS, too', async () => {
    const { caCert, serverCert, serverKey } = createCertificates();
    const server = await startTestServer({
      extraConfig: `tls { cert_file: "${serverCert}", key_file: "${serverKey}" }`,
    });
    const client = { servers: `localhost:${server.port}`, tls: { caFile: caCert } };
    const subscriber = await PlainSubscriber.start(client);
    const { trials } = await startPlanes(client, { subject: SUBJECT }, { subject: 'other' });
    for (let round = 0; round < 10; round++) {
      for (const trial of trials) trial.publish(1 << 19);
      await comesToAll(subscriber, trials);
    }
    for (const trial of trials) expectAll(trial, subscriber.on(trial.subject));
  });

  test('the blanks take nothing of the length that the server allows a line', async () => {
    const { url: servers } = await startTestServer();
    const subscriber = await PlainSubscriber.start({ servers });
    const longest = 'x'.repeat(4096 - ' 9999'.length);
    const { connection, trials } = await startPlanes({ servers }, { subject: longest });
    const [trial] = trials as [PlaneTrial];
    trial.publish(1);
    const lengths = trial.published.map(({ length }) => length);
    expect([Math.max(...lengths) > 999, Math.max(...lengths) > 9999]).toEqual([true, false]);
    await comesToAll(subscriber, trials);
    expectAll(trial, subscriber.on(longest));
    expect(connection.disconnects).toBe(0);

    const plain = await connect({ servers, reconnect: false });
    plain.publish(`${longest}x`, Buffer.alloc(1000));
    expect(String(await plain.closed())).toContain('maximum control line');
  });

  test('memory is not used again while a frozen server leaves it in the socket', async () => {
    const server = await startTestServer();
    const client = { servers: server.url };
    const subscriber = await PlainSubscriber.start(client);
    const planes = SUBJECTS.map((subject) => ({ subject }));
    const { connection, trials } = await startPlanes(client, ...planes);
    for (let cycle = 0; cycle < 3; cycle++) {
      for (const trial of trials) trial.publish(1 << 20);
      await comesToAll(subscriber, trials);
      server.kill('SIGSTOP');
      for (let turn = 0; turn < 6; turn++) {
        for (const trial of trials) trial.publish(MUCH / 6);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      server.kill('SIGCONT');
      await comesToAll(subscriber, trials);
    }
    for (const trial of trials) expectAll(trial, subscriber.on(trial.subject));
    expect(connection.disconnects).toBe(0);
  });

  test('nor is that of messages that an outbox drops, or that another publisher leaves behind', async () => {
    const server = await startTestServer();
    const client = { servers: server.url };
    const subscriber = await PlainSubscriber.start(client);
    const planes = SUBJECTS.map((subject) => ({ subject, outboxBytes: 1 << 20 }));
    const { connection, trials } = await startPlanes(client, ...planes);
    for (const trial of trials) trial.publish(1 << 19);
    await comesToAll(subscriber, trials);
    server.kill('SIGSTOP');
    for (let turn = 0; turn < 12; turn++) {
      for (const trial of trials) trial.publish(MUCH / 12);
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (turn === 6) for (const trial of trials.slice(3)) trial.succeed();
    }
    server.kill('SIGCONT');
    await comesToAll(subscriber, trials);
    // Into memory that the ones before have left.
    for (const trial of trials) trial.publish(1 << 20);
    await comesToAll(subscriber, trials);
    for (const trial of trials) {
      const numbers = numbersOf(trial, subscriber.on(trial.subject));
      expect(isRising(numbers)).toBe(true);
      expect(numbers.at(-1)).toBe(trial.published.length - 1);
    }
    for (const { metrics, subject, published } of trials.slice(0, 3)) {
      const { outbox_full: lost } = metrics.publishFailures;
      expect(lost).toBeGreaterThan(0);
      expect(subscriber.on(subject).length + lost).toBe(published.length);
    }
    expect(connection.disconnects).toBe(0);
  });

  test('a probe leaves behind all that it asks about', async () => {
    const { url: servers } = await startTestServer();
    const { connection, trials } = await startPlanes({ servers }, { subject: SUBJECT });
    const [trial] = trials as [PlaneTrial];
    let writtenBytes = 0;
    const writtenAtProbe: number[] = [];
    const write = connection.write.bind(connection);
    vi.spyOn(connection, 'write').mockImplementation((frames) => {
      writtenBytes += frames.length;
      return write(frames);
    });
    const confirm = connection.confirm.bind(connection);
    vi.spyOn(connection, 'confirm').mockImplementation(() => {
      writtenAtProbe.push(writtenBytes);
      return confirm();
    });
    trial.publish(1 << 21);
    await trial.isConfirmed();
    expect(writtenAtProbe.length).toBeGreaterThan(3);
    // A probe comes with each 256 KiB of envelopes, and frames are larger than those.
    for (const [index, bytes] of writtenAtProbe.slice(0, 3).entries()) {
      expect(bytes).toBeGreaterThan((index + 1) * (256 << 10));
    }
  });

  test('a server that stands still gets no more than a window, however much an outbox drops', async () => {
    const server = await startTestServer();
    const client = { servers: server.url };
    const options = { subject: SUBJECT, outboxBytes: 1 << 20 };
    const { connection, trials } = await startPlanes(client, options);
    const [trial] = trials as [PlaneTrial];
    const write = vi.spyOn(connection, 'write');
    const writtenBytes = (): number =>
      write.mock.calls.reduce((sum, [frames]) => sum + frames.length, 0);
    server.kill('SIGSTOP');
    for (let turn = 0; turn < 40; turn++) {
      trial.publish(1 << 19);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(writtenBytes()).toBeGreaterThan(4 << 20);
    expect(writtenBytes()).toBeLessThan(5 << 20);
    expect(trial.metrics.publishFailures.outbox_full).toBeGreaterThan(0);
    server.kill('SIGCONT');
    await trial.isConfirmed();
    trial.publish(1 << 19);
    await trial.isConfirmed();
    expect(connection.disconnects).toBe(0);
  });

  test.each([
    ['again', true],
    ['not again', false],
  ])(
    'through an outage with a full socket, what was on its way is sent %s, the same bytes',
    async (_, resends) => {
      let server = await startTestServer();
      const client = { servers: server.url };
      const subscriber = await PlainSubscriber.start(client);
      const planes = SUBJECTS.map((subject) => ({ subject, resends }));
      const { connection, trials } = await startPlanes(client, ...planes);
      for (let cycle = 1; cycle <= 2; cycle++) {
        for (const trial of trials) trial.publish(1 << 20);
        await comesToAll(subscriber, trials);
        server.kill('SIGSTOP');
        for (const trial of trials) trial.publish(MUCH / 2);
        await new Promise((resolve) => setTimeout(resolve, 50));
        server.kill('SIGKILL');
        await server.exited;
        for (const trial of trials) trial.publish(MUCH / 2);
        server = await startTestServer({ port: server.port });
        expect(await eventually(() => connection.connects > cycle)).toBe(true);
        await comesToAll(subscriber, trials);
      }
      for (const trial of trials) {
        const received = subscriber.on(trial.subject);
        if (resends) expectAll(trial, received);
        else expect(isRising(numbersOf(trial, received))).toBe(true);
      }
      const resent = trials.map(({ metrics }) => metrics.resentMessages > 0);
      expect(resent).toEqual(trials.map(() => resends));
    },
  );
});
