/** Answers over NATS that the server would not take: the asker times out, and nobody else notices. */
import { connect } from 'nats';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NatsConnection } from '../../src/connections/nats.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';

describe.skipIf(!natsServerAvailable())('an answer over NATS', () => {
  test('that is larger than the server takes is told of, and the next request is answered', async () => {
    const server = await startNatsServer({ maxPayloadBytes: 4096 });
    onTestFinished(() => server.stop());
    const errors: unknown[] = [];
    const connection = new NatsConnection({
      client: { servers: server.url },
      startupTimeoutMs: 5000,
      onError: (error) => errors.push(error),
    });
    connection.start();
    onTestFinished(() => connection.stop());
    const responder = connection.respond('sizes', (request) =>
      Buffer.alloc(Number(Buffer.from(request).toString())),
    );
    await responder.isReady;
    const client = await connect({ servers: server.url });
    onTestFinished(() => client.close());
    await expect(client.request('sizes', '5000', { timeout: 300 })).rejects.toThrow('TIMEOUT');
    expect(errors).toHaveLength(1);
    const { data } = await client.request('sizes', '100', { timeout: 5000 });
    expect(data).toHaveLength(100);
    expect(connection.isConnected).toBe(true);
  });
});
