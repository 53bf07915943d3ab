/**
 * RequestServer: the TCP request plane, one listener for all sources of the process.
 *
 * Acknowledges each request at once and in order: u32 length · text, no text where it is accepted.
 * Closes       what sends no frame, or none in time, and what is idle for long; at the bound of clients
 *              first those that never asked, so that strangers cannot keep routers out.
 * Throws       RecoveryListenError from `start`.
 * Source       ai-dynamo/dynamo 1.6.1, TCP request plane.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { KvRelayError } from '../../errors.ts';
import type { DroppedClientReason, RecoveryCounts } from '../../metrics/recovery-counts.ts';
import { type RequestFrame, RequestFrames } from './request-frames.ts';

export interface RequestServerLimits {
  readonly maxClients: number;
  /** For a frame that has begun, and for the first one of a connection. */
  readonly frameTimeoutMs: number;
  /** Routers keep a connection between their queries, which may be far apart. */
  readonly idleTimeoutMs: number;
  /** Acknowledgements a client may leave unread. */
  readonly maxUnreadBytes: number;
  readonly sweepMs: number;
}

const DEFAULT_LIMITS: RequestServerLimits = {
  maxClients: 256,
  frameTimeoutMs: 10_000,
  idleTimeoutMs: 30 * 60_000,
  maxUnreadBytes: 64 << 10,
  sweepMs: 1000,
};

/** A host that is gone without a word is noticed by the kernel, from this idle time on. */
const KEEPALIVE_DELAY_MS = 30_000;

const LAST_WORDS_MS = 1000;

/** TLS handshakes at a time. */
const MAX_HANDSHAKES = 64;

export interface RequestServerOptions {
  /** An address of this host; IPv6 without brackets. */
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  /** The text of the acknowledgement; empty where the request is accepted. Never throws. */
  readonly accept: (frame: RequestFrame) => string;
  readonly counts: RecoveryCounts;
  readonly onError: (error: unknown) => void;
  readonly limits?: Partial<RequestServerLimits>;
  /** Null or absent: routers ask without. */
  readonly tls?: TlsOptions | null;
}

/** The address for routers' queries cannot be bound. */
export class RecoveryListenError extends KvRelayError {
  readonly code = 'KVR_RECOVERY_LISTEN';

  constructor(host: string, port: number, cause: unknown) {
    super(`Cannot listen for router queries on ${host} port ${port}`, {
      cause,
      remedy: 'Free the port, or give another with DYN_TCP_RPC_PORT (0 takes a free one)',
    });
  }
}

interface Client {
  readonly socket: Socket;
  readonly frames: RequestFrames;
  /** A frame has come whole. */
  hasAsked: boolean;
  /** The frame that is incomplete began then; null between frames. */
  frameBeganMs: number | null;
  lastActiveMs: number;
}

export class RequestServer {
  readonly #options: RequestServerOptions;
  readonly #limits: RequestServerLimits;
  readonly #server: Server;
  readonly #clients = new Set<Client>();
  /** Connections whose TLS handshake is not over, by their other end. */
  readonly #handshakes = new Map<string, Socket>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: RequestServerOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    const tcp = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_DELAY_MS };
    const { tls = null } = options;
    this.#server =
      tls === null
        ? createServer(tcp, (socket) => this.#admit(socket))
        : createTlsServer({ ...tls, ...tcp }, (socket) => {
            this.#handshakes.delete(otherEnd(socket));
            this.#admit(socket);
          });
    if (tls === null) return;
    this.#server.on('connection', (socket: Socket) => this.#meet(socket));
    this.#server.on('tlsClientError', () => options.counts.droppedClients.handshake++);
  }

  /** The port that was bound. */
  async start(): Promise<number> {
    const { host, port, onError } = this.#options;
    this.#server.listen({ host, port });
    try {
      await once(this.#server, 'listening');
    } catch (error) {
      throw new RecoveryListenError(host, port, error);
    }
    this.#server.on('error', onError);
    this.#sweeper = setInterval(() => this.#sweep(), this.#limits.sweepMs);
    this.#sweeper.unref();
    return (this.#server.address() as AddressInfo).port;
  }

  /** Also before `start`, and more than once. */
  async stop(): Promise<void> {
    clearInterval(this.#sweeper);
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const { socket } of this.#clients) socket.destroy();
    for (const socket of this.#handshakes.values()) socket.destroy();
    await closed;
  }

  /** At the bound the oldest handshake goes: a router is through with its own in no time. */
  #meet(socket: Socket): void {
    const [oldest] = this.#handshakes.values();
    if (oldest !== undefined && this.#handshakes.size >= MAX_HANDSHAKES) {
      this.#options.counts.droppedClients.too_many++;
      oldest.destroy();
    }
    const end = otherEnd(socket);
    this.#handshakes.set(end, socket);
    socket.on('close', () => this.#handshakes.delete(end));
  }

  #admit(socket: Socket): void {
    if (this.#clients.size >= this.#limits.maxClients) this.#dropQuietest();
    const frames = new RequestFrames();
    const lastActiveMs = performance.now();
    const client: Client = { socket, frames, hasAsked: false, frameBeganMs: null, lastActiveMs };
    this.#clients.add(client);
    this.#options.counts.clients = this.#clients.size;
    socket.on('data', (chunk) => this.#take(client, chunk));
    // What breaks a connection is told by its close alone.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#forget(client));
  }

  #take(client: Client, chunk: Buffer): void {
    const frames: RequestFrame[] = [];
    const isWellFormed = client.frames.push(chunk, frames);
    const acknowledgements = frames.map((frame) => acknowledgement(this.#options.accept(frame)));
    if (acknowledgements.length > 0) client.socket.write(Buffer.concat(acknowledgements));
    if (!isWellFormed) this.#drop(client, 'malformed_frame');
    else if (client.socket.writableLength > this.#limits.maxUnreadBytes) {
      this.#drop(client, 'unread_acknowledgements');
    }
    client.hasAsked ||= frames.length > 0;
    if (frames.length > 0) client.lastActiveMs = performance.now();
    if (!client.frames.isInFrame) client.frameBeganMs = null;
    else if (frames.length > 0) client.frameBeganMs = client.lastActiveMs;
    else client.frameBeganMs ??= performance.now();
  }

  #sweep(): void {
    const { frameTimeoutMs, idleTimeoutMs } = this.#limits;
    const nowMs = performance.now();
    for (const client of this.#clients) {
      const { hasAsked, frameBeganMs, lastActiveMs } = client;
      if (frameBeganMs !== null && nowMs - frameBeganMs > frameTimeoutMs) {
        this.#drop(client, 'slow_frame');
      } else if (frameBeganMs !== null) continue;
      else if (!hasAsked && nowMs - lastActiveMs > frameTimeoutMs) this.#drop(client, 'silent');
      else if (nowMs - lastActiveMs > idleTimeoutMs) this.#drop(client, 'idle');
    }
  }

  #dropQuietest(): void {
    let quietest: Client | null = null;
    for (const client of this.#clients) {
      if (quietest === null || isQuieter(client, quietest)) quietest = client;
    }
    if (quietest !== null) this.#drop(quietest, 'too_many');
  }

  #drop(client: Client, reason: DroppedClientReason): void {
    this.#forget(client);
    this.#options.counts.droppedClients[reason]++;
    const { socket } = client;
    if (reason !== 'malformed_frame') {
      socket.destroy();
      return;
    }
    // Acknowledgements already given go out first, to a client that reads them.
    socket.removeAllListeners('data').pause();
    socket.setTimeout(LAST_WORDS_MS, () => socket.destroy());
    socket.destroySoon();
  }

  #forget(client: Client): void {
    this.#clients.delete(client);
    this.#options.counts.clients = this.#clients.size;
  }
}

function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function isQuieter(one: Client, other: Client): boolean {
  if (one.hasAsked !== other.hasAsked) return !one.hasAsked;
  return one.lastActiveMs < other.lastActiveMs;
}

function acknowledgement(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
