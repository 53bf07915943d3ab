/**
 * The engine's event socket: what the listener needs of it, and which of the two that there are it gets.
 *
 * ZmtpEngineSocket  connects to `tcp` and `ipc` addresses and reads them itself: a promise, a list and three buffers
 *                   less for each message, and no thread beside the main one.
 * ZmqEngineSocket   libzmq, for all else: a socket that is bound, and addresses of other kinds.
 */
import { connectAddress } from '../connections/zmtp/net-address.ts';
import type { Compat } from '../protocol/compat.ts';
import type { EngineMessage, FrameFault } from './frames.ts';
import { ZmqEngineSocket } from './zmq-engine-socket.ts';
import { ZmtpEngineSocket } from './zmtp-engine-socket.ts';

export interface EngineSocket {
  readonly isConnected: boolean;
  /** Handshakes so far. */
  readonly connects: number;
  /** Rejects where the address cannot be bound. */
  start(): Promise<void>;
  /** Passes on what has already arrived, for at most `maxMs`. */
  drain(maxMs: number): Promise<void>;
  /** Nothing is passed on or told behind it. */
  close(): Promise<void>;
}

export interface EngineSocketOptions {
  readonly endpoint: string;
  readonly bind: boolean;
  /** Prefix of the topics taken; empty takes all. */
  readonly topic: string;
  readonly receiveHwm: number;
  readonly maxMessageBytes: number;
  readonly compat: Compat;
  /** `nowMs`: on the monotonic clock. A payload lasts until the next one has been passed on. Must not throw. */
  readonly onMessage: (message: EngineMessage | FrameFault, nowMs: number) => void;
  readonly onLink: () => void;
}

export function createEngineSocket(options: EngineSocketOptions): EngineSocket {
  const { bind, endpoint } = options;
  // Node connects to abstract sockets from 20.4 on.
  const address = bind || endpoint.startsWith('ipc://@') ? null : connectAddress(endpoint);
  return address === null ? new ZmqEngineSocket(options) : new ZmtpEngineSocket(options, address);
}
