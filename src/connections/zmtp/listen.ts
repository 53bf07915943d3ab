/** Listens at ZMQ endpoints. */
import { once } from 'node:events';
import { lstatSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server } from 'node:net';
import { errorCode } from '../../errors.ts';
import { listenAddress } from './net-address.ts';

/**
 * The endpoint that is bound: with numbers for names and port 0. A socket file that somebody has left behind is put out of
 * the way, one that is listened at is not.
 *
 * Rejects with the system's error.
 */
export async function listen(server: Server, endpoint: string): Promise<string> {
  const address = listenAddress(endpoint);
  try {
    await listenOnce(server, address);
  } catch (error) {
    const { path } = address;
    if (errorCode(error) !== 'EADDRINUSE' || !path || !(await isLeftBehind(path))) throw error;
    unlinkSync(path);
    await listenOnce(server, address);
  }
  const bound = server.address() as AddressInfo | string;
  if (typeof bound === 'string') return endpoint;
  const host = bound.address.includes(':') ? `[${bound.address}]` : bound.address;
  return `tcp://${host}:${bound.port}`;
}

async function listenOnce(server: Server, address: ListenOptions): Promise<void> {
  server.listen(address);
  await once(server, 'listening');
}

async function isLeftBehind(path: string): Promise<boolean> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return false;
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return false;
  } catch (error) {
    return errorCode(error) === 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}
