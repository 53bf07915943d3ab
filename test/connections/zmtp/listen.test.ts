/** Where a publisher can be bound, and what becomes of socket files. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/connections/zmtp/listen.ts';

function newServer(): Server {
  const server = createServer();
  onTestFinished(() => {
    server.close();
  });
  return server;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kvrelay-listen-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const bound = (endpoint: string): Promise<string> => listen(newServer(), endpoint);

describe('The endpoint that is bound', () => {
  test.each([
    ['tcp://127.0.0.1:0', /^tcp:\/\/127\.0\.0\.1:\d+$/],
    ['tcp://*:0', /^tcp:\/\/0\.0\.0\.0:\d+$/],
    ['tcp://localhost:0', /^tcp:\/\/(127\.0\.0\.1|\[::1\]):\d+$/],
    ['ipc://@kvrelay-listen-test', /^ipc:\/\/@kvrelay-listen-test$/],
  ])('of %s', async (endpoint, expected) => {
    expect(await bound(endpoint)).toMatch(expected);
  });

  test('of a port that is free is that port', async () => {
    const endpoint = await bound('tcp://127.0.0.1:0');
    await expect(bound(endpoint)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test.each([
    ['tcp://192.0.2.1:0', /EADDRNOTAVAIL/],
    ['tcp://no-such-interface-nor-host.invalid:0', /ENOTFOUND|EAI_AGAIN/],
  ])('is none for %s', async (endpoint, why) => {
    await expect(bound(endpoint)).rejects.toThrow(why);
  });
});

describe('A socket file', () => {
  test('is there while the server is, and goes with it', async () => {
    const path = join(newFolder(), 'plane');
    const server = newServer();
    expect(await listen(server, `ipc://${path}`)).toBe(`ipc://${path}`);
    expect(existsSync(path)).toBe(true);
    server.close();
    expect(existsSync(path)).toBe(false);
  });

  test('that a killed process has left behind is taken over', async () => {
    const path = join(newFolder(), 'plane');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', script]);
    expect(existsSync(path)).toBe(true);
    expect(await bound(`ipc://${path}`)).toBe(`ipc://${path}`);
  });

  test('that somebody listens at is not', async () => {
    const endpoint = `ipc://${join(newFolder(), 'plane')}`;
    await bound(endpoint);
    await expect(bound(endpoint)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('nor is a file that is no socket', async () => {
    const path = join(newFolder(), 'notes');
    writeFileSync(path, 'mine');
    await expect(bound(`ipc://${path}`)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });
});
