/**
 * SimulatedNet: TCP between routers and the relay's process. Takes the place of node:net there.
 *
 * Process  what the real parts open belongs to the relay process of that moment, and dies with it: the
 *          other ends see a connection that ends, or one on which nothing comes any more.
 */
import { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';
import type { Random } from './random.ts';
import { type Fate, Pipe, SimulatedSocket } from './simulated-socket.ts';
import type { VirtualClock } from './virtual-clock.ts';

type Accept = (socket: SimulatedSocket) => void;

const FIRST_PORT = 40_000;

/** Until a connection that does not come about is given up. */
const UNREACHABLE_MS = 7000;

/** How long connections live that break. */
const BREAKS_MS: Partial<Record<Fate, readonly number[]>> = {
  cut: [0.2, 0.6, 5, 100],
  stalled: [1000, 4000, 12_000],
};

/** Of the history that is played now: the real parts find it here. */
let current: SimulatedNet | null = null;

export class SimulatedNet {
  readonly clock: VirtualClock;
  readonly #random: Random;
  readonly #servers = new Map<number, Accept>();
  #nextPort = FIRST_PORT;
  /** Of the present process. */
  #sockets = new Set<SimulatedSocket>();
  readonly #answers = new Set<SimulatedSocket>();
  #ports: number[] = [];
  /** What becomes of connections that begin now: questions go to the relay, answers to routers. */
  readonly fates: { questions: readonly Fate[]; answers: readonly Fate[] } = {
    questions: ['whole'],
    answers: ['whole'],
  };

  constructor(clock: VirtualClock, random: Random) {
    this.clock = clock;
    this.#random = random;
  }

  /** An answer of the process may be under way. */
  get isInUse(): boolean {
    for (const socket of this.#answers) if (socket.destroyed) this.#answers.delete(socket);
    return this.#answers.size > 0;
  }

  /** A port of a router's, which outlives relay processes. */
  listen(accept: Accept): number {
    const port = this.#nextPort++;
    this.#servers.set(port, accept);
    return port;
  }

  close(port: number): void {
    this.#servers.delete(port);
  }

  listenInProcess(accept: Accept): number {
    const port = this.listen((socket) => {
      this.#sockets.add(socket);
      accept(socket);
    });
    this.#ports.push(port);
    return port;
  }

  connectFromProcess(port: number): SimulatedSocket {
    const socket = this.connect(port, this.#random.pick(this.fates.answers));
    this.#sockets.add(socket);
    this.#answers.add(socket);
    return socket;
  }

  /** From a router to the relay. */
  ask(port: number): SimulatedSocket {
    return this.connect(port, this.#random.pick(this.fates.questions));
  }

  connect(port: number, fate: Fate): SimulatedSocket {
    const { clock } = this;
    const pipe = new Pipe(clock, this.#random.fork(`pipe ${this.#random.next()}`), fate);
    const near = new SimulatedSocket(pipe, false);
    if (fate === 'unreachable') {
      clock.schedule(() => near.reset(), UNREACHABLE_MS);
      return near;
    }
    clock.schedule(
      () => {
        const accept = this.#servers.get(port);
        if (near.destroyed) return;
        if (accept === undefined || fate === 'refused') {
          near.reset();
          return;
        }
        const far = new SimulatedSocket(pipe, true);
        near.peer = far;
        far.peer = near;
        clock.followOn();
        accept(far);
        near.connected();
        const breaksMs = BREAKS_MS[fate];
        if (breaksMs === undefined) return;
        clock.schedule(() => pipe.break([near, far]), this.#random.pick(breaksMs));
      },
      this.#random.pick([0.1, 1, 3]),
    );
    return near;
  }

  /** The relay's process is gone, with the host where `isSilent`. */
  killProcess(isSilent: boolean): void {
    for (const port of this.#ports) this.#servers.delete(port);
    for (const socket of this.#sockets) {
      if (isSilent) socket.vanish();
      else socket.destroy();
    }
    this.#ports = [];
    this.#sockets = new Set();
  }
}

class SimulatedServer extends EventEmitter {
  readonly #net: SimulatedNet;
  readonly #accept: Accept;
  #port = 0;
  listening = false;

  constructor(net: SimulatedNet, accept: Accept) {
    super();
    this.#net = net;
    this.#accept = accept;
  }

  listen(): this {
    this.listening = true;
    this.#port = this.#net.listenInProcess(this.#accept);
    this.#net.clock.schedule(() => this.#tell('listening'), 0);
    return this;
  }

  address(): { port: number } {
    return { port: this.#port };
  }

  close(): this {
    this.listening = false;
    this.#net.close(this.#port);
    this.#net.clock.schedule(() => this.#tell('close'), 0);
    return this;
  }

  #tell(event: 'listening' | 'close'): void {
    this.#net.clock.followOn();
    this.emit(event);
  }
}

/** What the real parts find from here on. */
export function useNet(net: SimulatedNet): void {
  current = net;
}

/** As in node:net, where a real part calls it. */
export function connect({ port }: { readonly port: number }): Socket {
  return netNow().connectFromProcess(port) as unknown as Socket;
}

/** As above. */
export function createServer(_options: object, accept: (socket: Socket) => void): Server {
  const server = new SimulatedServer(netNow(), (socket) => accept(socket as unknown as Socket));
  return server as unknown as Server;
}

function netNow(): SimulatedNet {
  if (current === null) throw new Error('no history is played');
  return current;
}
