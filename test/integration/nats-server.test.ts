import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { connect } from 'nats';
import { describe, expect, test } from 'vitest';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';

describe.skipIf(!natsServerAvailable())('startNatsServer()', () => {
  test('starts a server that carries messages', async () => {
    const server = await startNatsServer();
    const connection = await connect({ servers: server.url });
    const subscription = connection.subscribe('blocks', { max: 1 });
    connection.publish('blocks', Uint8Array.of(7, 8));

    const received: Uint8Array[] = [];
    for await (const message of subscription) received.push(message.data);

    expect(received.map((bytes) => [...bytes])).toEqual([[7, 8]]);
    await connection.close();
    await server.stop();
  });

  test('leaves no process and no folder after stop()', async () => {
    const before = temporaryFolders();
    const server = await startNatsServer();
    expect(isAlive(server.pid)).toBe(true);
    expect(temporaryFolders()).not.toEqual(before);

    await server.stop();

    expect(isAlive(server.pid)).toBe(false);
    expect(temporaryFolders()).toEqual(before);
  });

  test('hands its limit and further settings to the server', async () => {
    const server = await startNatsServer({
      maxPayloadBytes: 4_096,
      extraConfig: 'authorization { user: relay, password: secret }',
    });

    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow(
      /Authorization/,
    );
    const connection = await connect({ servers: server.url, user: 'relay', pass: 'secret' });

    expect(connection.info?.max_payload).toBe(4_096);
    await connection.close();
    await server.stop();
  });

  test('comes back on the port of a killed server', async () => {
    const first = await startNatsServer();
    first.kill('SIGKILL');
    await first.exited;

    const second = await startNatsServer({ port: first.port });

    expect(second.url).toBe(first.url);
    await second.stop();
  });

  test('stops a frozen server too', async () => {
    const server = await startNatsServer();
    server.kill('SIGSTOP');

    await server.stop();

    expect(isAlive(server.pid)).toBe(false);
  });

  test('says what the server had to say when it does not start', async () => {
    await expect(startNatsServer({ extraConfig: 'no_such_setting: 1' })).rejects.toThrow(
      /no_such_setting/,
    );
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Of this process only: other test files start servers at the same time. */
function temporaryFolders(): string[] {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(`kvrelay-nats-${process.pid}-`))
    .sort();
}
