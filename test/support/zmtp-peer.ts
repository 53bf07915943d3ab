/** A peer on a TCP port that sends whatever bytes it is told, and keeps what it gets. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export class ZmtpPeer {
  /** One a link, in the order in which they came. */
  readonly sockets: Socket[] = [];
  /** When each link came, ms on the monotonic clock. */
  readonly linkedAtMs: number[] = [];
  readonly #received: Buffer[][] = [];
  readonly #server: Server;

  /** `onLink` is called with each new link. */
  static async start(onLink: (socket: Socket) => void = () => undefined): Promise<ZmtpPeer> {
    const peer = new ZmtpPeer(onLink);
    peer.#server.listen(0, '127.0.0.1');
    await once(peer.#server, 'listening');
    onTestFinished(() => peer.close());
    return peer;
  }

  private constructor(onLink: (socket: Socket) => void) {
    this.#server = createServer((socket) => {
      const received: Buffer[] = [];
      this.#received.push(received);
      this.sockets.push(socket);
      this.linkedAtMs.push(performance.now());
      socket.on('data', (bytes) => received.push(bytes));
      socket.on('error', () => undefined);
      onLink(socket);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** All that has come over the link of this index. */
  received(link = 0): Buffer {
    return Buffer.concat(this.#received[link] ?? []);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}
