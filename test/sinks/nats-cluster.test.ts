/** A relay whose server goes, in a cluster: it goes on at another one. */
import { describe, expect, test } from 'vitest';
import { freePorts } from '../support/free-ports.ts';
import { PlainSubscriber, startPlanes } from '../support/nats-planes.ts';
import { type NatsServerProcess, natsServerAvailable } from '../support/nats-server.ts';
import { startTestServer } from '../support/nats-trial.ts';
import { eventually } from '../support/plane-collector.ts';
import { decodeEnvelope } from '../support/scenarios.ts';

const SUBJECT = 'namespace.dynamo.component.backend.endpoint.generate.kv-events';

/** Two servers with a route between them. */
async function startCluster(): Promise<[NatsServerProcess, NatsServerProcess]> {
  const port = await freePorts(2);
  const clustered = (own: number, other: number): string =>
    `cluster { name: kvr, host: 127.0.0.1, port: ${own}, routes: ["nats://127.0.0.1:${other}"], no_advertise: true }`;
  const [first, second] = await Promise.all([
    startTestServer({ extraConfig: clustered(port, port + 1) }),
    startTestServer({ extraConfig: clustered(port + 1, port) }),
  ]);
  return [first, second];
}

describe.skipIf(!natsServerAvailable())('In a cluster', () => {
  test.each([
    ['is stopped', 'SIGTERM'],
    ['is killed', 'SIGKILL'],
  ] as const)('the relay goes on at another server when its own %s', async (_name, signal) => {
    const [first, second] = await startCluster();
    const subscriber = await PlainSubscriber.start({ servers: second.url });
    const client = {
      servers: [first.url, second.url],
      noRandomize: true,
      reconnectTimeWait: 20,
      maxReconnectAttempts: -1,
    };
    const { connection, trials } = await startPlanes(client, { subject: SUBJECT });
    const [trial] = trials;
    if (trial === undefined) throw new Error('no plane');
    // The route has to know of the subscription.
    expect(
      await eventually(() => {
        trial.publish(1);
        return subscriber.on(SUBJECT).length > 0;
      }),
    ).toBe(true);
    const before = trial.published.length;
    for (let turn = 0; turn < 60; turn++) {
      trial.publish(1 << 17);
      if (turn === 20) first.kill(signal);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await trial.isConfirmed();
    await subscriber.settle();
    expect([connection.disconnects > 0, connection.isConnected]).toEqual([true, true]);
    const numbers = subscriber.on(SUBJECT).map((envelope) => {
      const { sequence } = decodeEnvelope(envelope);
      expect(trial.published[sequence]?.equals(envelope)).toBe(true);
      return sequence;
    });
    const firsts = [...new Set(numbers)].filter((number) => number >= before);
    // What the first server had taken and not passed on is lost with it: a router sees the hole, and asks.
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
    expect(firsts.at(-1)).toBe(trial.published.length - 1);
  });
});
