/** A TCP forwarder that can be frozen: links stay open, and nothing passes. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export class Forwarder {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isFrozen = false;

  private constructor(targetPort: number) {
    this.#server = createServer((inner) => {
      const outer = connect(targetPort, '127.0.0.1');
      this.#join(inner, outer);
      this.#join(outer, inner);
    });
  }

  static async to(targetPort: number): Promise<Forwarder> {
    const forwarder = new Forwarder(targetPort);
    forwarder.#server.listen(0, '127.0.0.1');
    await once(forwarder.#server, 'listening');
    onTestFinished(() => {
      forwarder.cut();
      forwarder.#server.close();
    });
    return forwarder;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** New links are taken, and carry nothing either. */
  freeze(): void {
    this.#isFrozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends every link. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    if (this.#isFrozen) from.pause();
    from.on('data', (bytes) => to.write(bytes));
    from.on('error', () => undefined);
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
