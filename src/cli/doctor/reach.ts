/** Whether somebody listens at a ZMQ address, and whether it is a ZMQ socket: seen by its first bytes. */
import { connect } from 'node:net';
import { parseZmqAddress } from '../../config/addresses.ts';
import { errorCode, messageOf } from '../../errors.ts';

export type Reach =
  /** It greets as ZMQ sockets do. */
  | { readonly kind: 'zmq' }
  /** Somebody is there who says something else, or nothing. */
  | { readonly kind: 'stranger' }
  | { readonly kind: 'unreachable'; readonly problem: string }
  | { readonly kind: 'late' };

/** A ZMQ socket greets as soon as it has accepted. */
const GREETING_MS = 1000;
const GREETING_BYTES = 10;

const PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOENT: 'there is no such socket',
  ENOTSOCK: 'the path is no socket',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  EACCES: 'permission is missing',
};

/** `endpoint`: tcp or ipc, to connect to. */
export async function reach(endpoint: string, ended: AbortSignal): Promise<Reach> {
  const address = parseZmqAddress(endpoint);
  if (address === undefined) return { kind: 'unreachable', problem: 'it is no address' };
  const target =
    address.transport === 'ipc'
      ? { path: address.path }
      : { host: address.host.replace(/^\[|\]$/g, ''), port: address.port };
  const socket = connect(target);
  let isOpen = false;
  let greeting: NodeJS.Timeout | undefined;
  const found = new Promise<Reach>((resolve) => {
    const bytes: Buffer[] = [];
    const judge = (): void => {
      resolve({ kind: isZmqGreeting(Buffer.concat(bytes)) ? 'zmq' : 'stranger' });
    };
    socket.once('connect', () => {
      isOpen = true;
      greeting = setTimeout(judge, GREETING_MS);
    });
    socket.on('data', (chunk) => {
      bytes.push(chunk);
      if (Buffer.concat(bytes).length >= GREETING_BYTES) judge();
    });
    socket.once('end', judge);
    socket.once('error', (error) => {
      const problem = PROBLEMS[errorCode(error)] ?? messageOf(error);
      resolve(isOpen ? { kind: 'stranger' } : { kind: 'unreachable', problem });
    });
    ended.addEventListener('abort', () => resolve({ kind: isOpen ? 'stranger' : 'late' }));
    if (ended.aborted) resolve({ kind: 'late' });
  });
  try {
    return await found;
  } finally {
    clearTimeout(greeting);
    socket.destroy();
  }
}

/** ff, eight bytes, and one whose lowest bit is set. */
function isZmqGreeting(bytes: Buffer): boolean {
  return bytes.length >= GREETING_BYTES && bytes[0] === 0xff && ((bytes[9] ?? 0) & 1) === 1;
}

/** Why it is no ZMQ socket. */
export function messageOfReach(reach: Exclude<Reach, { kind: 'zmq' }>): string {
  if (reach.kind === 'unreachable') return reach.problem;
  if (reach.kind === 'late') return 'no connection in time';
  return 'what listens there is no ZMQ socket';
}
