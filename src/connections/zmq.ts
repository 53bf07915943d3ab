/**
 * What every ZMQ socket here has in common: options, connection state, reading without starving timers.
 *
 * Heartbeats  a dead link is noticed within HEARTBEAT_INTERVAL_MS + HEARTBEAT_TIMEOUT_MS.
 * Connected   means that the ZMTP handshake is done; a TCP connection alone proves no engine.
 */
import { rmSync } from 'node:fs';
import type { Socket } from 'zeromq';
import { nextTurn, settled, TURN_MESSAGES, TURN_MS } from './turns.ts';

const HEARTBEAT_INTERVAL_MS = 5000;
const HEARTBEAT_TIMEOUT_MS = 8000;

export interface CommonSocketOptions {
  readonly linger: number;
  readonly ipv6: boolean;
  readonly heartbeatInterval: number;
  readonly heartbeatTimeout: number;
  readonly reconnectInterval: number;
  readonly reconnectMaxInterval: number;
  readonly tcpKeepalive: number;
}

/** IPv6 is switched on for bracketed addresses only: it changes what `*` and `localhost` bind to. */
export function socketOptions(endpoint: string, lingerMs: number): CommonSocketOptions {
  return {
    linger: lingerMs,
    ipv6: endpoint.startsWith('tcp://['),
    heartbeatInterval: HEARTBEAT_INTERVAL_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    reconnectInterval: 100,
    reconnectMaxInterval: 5000,
    tcpKeepalive: 1,
  };
}

/**
 * Follows the handshakes of one socket's peers.
 *
 * libzmq does not say whose link ended. One without a handshake (a port scan, a health probe) is taken
 * to end first: where that is wrong, libzmq's handshake timeout puts the count right.
 */
export class PeerCount {
  #peers = 0;
  #pendingLinks = 0;
  /** Handshakes since the start. */
  connects = 0;
  disconnects = 0;

  constructor(socket: Socket, onChange: () => void) {
    const addLink = (): void => {
      this.#pendingLinks++;
    };
    socket.events.on('accept', addLink);
    socket.events.on('connect', addLink);
    socket.events.on('handshake', () => {
      this.#pendingLinks = Math.max(0, this.#pendingLinks - 1);
      this.#peers++;
      this.connects++;
      onChange();
    });
    socket.events.on('disconnect', () => {
      if (this.#pendingLinks > 0) {
        this.#pendingLinks--;
        return;
      }
      if (this.#peers === 0) return;
      this.#peers--;
      this.disconnects++;
      onChange();
    });
  }

  get peers(): number {
    return this.#peers;
  }
}

const RELINK_MS = 1000;

type ConnectingSocket = Socket & {
  connect(address: string): void;
  disconnect(address: string): void;
};

/**
 * Connects, and again where a link has ended and libzmq does not try: it does where the connection broke, but
 * leaves a peer for good that breaks the protocol or sends more than `maxMessageSize`. Then it says nothing
 * behind the end of the link, where it else tells of its next attempt.
 */
export function keepConnected(
  socket: ConnectingSocket,
  endpoint: string,
  onRelink: () => void = () => undefined,
): void {
  let timer: NodeJS.Timeout | undefined;
  socket.events.on('disconnect', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (socket.closed) return;
      onRelink();
      // It still has the address, and would not connect to it a second time.
      socket.disconnect(endpoint);
      socket.connect(endpoint);
    }, RELINK_MS);
    timer.unref();
  });
  for (const attempt of ['connect:retry', 'connect:delay', 'connect', 'handshake'] as const) {
    socket.events.on(attempt, () => clearTimeout(timer));
  }
  socket.connect(endpoint);
}

/**
 * MessageReader: the one reader of a socket.
 *
 * libzmq hands out up to 512 messages in one turn of the event loop; timers would starve, so it yields.
 */
export class MessageReader {
  readonly #socket: Socket & { receive(): Promise<Buffer[]> };
  readonly #onMessage: (frames: Buffer[]) => void;
  readonly #ended: Promise<void>;
  /** True while the socket has nothing to hand out. */
  #isIdle = false;
  /** Messages so far. */
  messageCount = 0;

  /** Starts to read; `onMessage` must not throw. */
  constructor(
    socket: Socket & { receive(): Promise<Buffer[]> },
    onMessage: (frames: Buffer[]) => void,
  ) {
    this.#socket = socket;
    this.#onMessage = onMessage;
    this.#ended = this.#run();
  }

  get hasWaiting(): boolean {
    return !this.#isIdle;
  }

  /** Passes on what has already arrived, for at most `maxMs`. */
  async drain(maxMs: number): Promise<void> {
    await settled(this, maxMs);
  }

  /**
   * Closes the socket; `boundTo` is the address it is bound to, if any. There is no unbind: it works on
   * another thread, and a peer that leaves meanwhile makes libzmq abort the process.
   */
  async close(boundTo: string | null): Promise<void> {
    this.#socket.close();
    // libzmq removes the file in its own time, which an exit may cut short.
    if (boundTo?.startsWith('ipc://')) rmSync(boundTo.slice('ipc://'.length), { force: true });
    await this.#ended;
  }

  async #run(): Promise<void> {
    let turnStartMs = performance.now();
    let turnMessages = 0;
    for (;;) {
      let frames: Buffer[];
      try {
        this.#isIdle = true;
        frames = await this.#socket.receive();
      } catch (error) {
        if (this.#socket.closed || isTryAgain(error)) return;
        throw error;
      }
      this.#isIdle = false;
      this.messageCount++;
      this.#onMessage(frames);
      turnMessages++;
      if (turnMessages < TURN_MESSAGES && performance.now() - turnStartMs < TURN_MS) continue;
      await nextTurn();
      turnStartMs = performance.now();
      turnMessages = 0;
    }
  }
}

/** A receive of a socket that is closed, and a send that would have to wait, end with EAGAIN. */
export function isTryAgain(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
