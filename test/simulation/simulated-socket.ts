/**
 * SimulatedSocket: one end of a connection of the simulated network, as far as the real parts use one.
 *
 * Pipe     carries both directions, each in order; what is written is not copied, as by a real socket.
 * Ends     when both sides have ended, or one is destroyed; a broken pipe is told by `error` and `close`,
 *          or by nothing at all.
 */
import { EventEmitter } from 'node:events';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** What becomes of a connection. */
export const BAD_FATES = [
  /** Nobody listens. */
  'refused',
  /** Nobody answers, not even with a refusal. */
  'unreachable',
  /** For a while. */
  'slow',
  /** It breaks, be it within a message. */
  'cut',
  /** It stands, and nothing gets through, until it breaks. */
  'stalled',
] as const;
export type Fate = 'whole' | (typeof BAD_FATES)[number];

const SLOW_MS = 5000;

export class Pipe {
  readonly clock: VirtualClock;
  readonly #random: Random;
  readonly #fate: Fate;
  readonly #beganMs: number;
  readonly #lastArrivalMs = new Map<SimulatedSocket, number>();
  isBroken = false;

  constructor(clock: VirtualClock, random: Random, fate: Fate) {
    this.clock = clock;
    this.#random = random;
    this.#fate = fate;
    this.#beganMs = clock.nowMs();
  }

  /** `arrive` is called once what `from` sends is at the other end, if ever. */
  carry(from: SimulatedSocket, arrive: () => void): void {
    if (this.isBroken || this.#fate === 'stalled') return;
    const nowMs = this.clock.nowMs();
    const isSlow = this.#fate === 'slow' && nowMs < this.#beganMs + SLOW_MS;
    const latencyMs = isSlow ? this.#random.between(100, 2500) : this.#random.pick([0.1, 0.5, 3]);
    const atMs = Math.max(nowMs + latencyMs, this.#lastArrivalMs.get(from) ?? 0);
    this.#lastArrivalMs.set(from, atMs);
    this.clock.schedule(() => {
      if (this.isBroken) return;
      this.clock.followOn();
      arrive();
    }, atMs - nowMs);
  }

  break(ends: readonly SimulatedSocket[]): void {
    if (this.isBroken) return;
    this.isBroken = true;
    for (const end of ends) this.clock.schedule(() => end.reset(), this.#random.pick([0, 1, 20]));
  }
}

export class SimulatedSocket extends EventEmitter {
  destroyed = false;
  writableEnded = false;
  readonly writableNeedDrain = false;
  readonly writableLength = 0;
  peer: SimulatedSocket | null = null;
  readonly #pipe: Pipe;
  #isConnected: boolean;
  /** Written before the connection stood. */
  #early: (() => void)[] = [];
  #idleMs = 0;
  #cancelIdle: () => void = () => undefined;

  constructor(pipe: Pipe, isConnected: boolean) {
    super();
    this.#pipe = pipe;
    this.#isConnected = isConnected;
  }

  connected(): void {
    if (this.destroyed) return;
    this.#isConnected = true;
    this.emit('connect');
    for (const send of this.#early.splice(0)) send();
  }

  write(bytes: Uint8Array): boolean {
    if (this.destroyed || this.writableEnded) return false;
    this.#touch();
    this.#send(() => this.peer?.receive(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)));
    return true;
  }

  end(): this {
    if (this.destroyed || this.writableEnded) return this;
    this.writableEnded = true;
    this.#send(() => this.peer?.receiveEnd());
    return this;
  }

  destroy(): this {
    if (this.destroyed) return this;
    this.end();
    this.vanish();
    this.#pipe.clock.schedule(() => this.#tell('close'), 0);
    return this;
  }

  destroySoon(): void {
    this.destroy();
  }

  /** Ends without a word to anybody. */
  vanish(): void {
    this.destroyed = true;
    this.#cancelIdle();
  }

  receive(bytes: Buffer): void {
    if (this.destroyed) return;
    this.#touch();
    this.emit('data', bytes);
  }

  receiveEnd(): void {
    if (this.destroyed) return;
    this.emit('end');
    this.destroy();
  }

  reset(): void {
    if (this.destroyed) return;
    this.vanish();
    this.emit('error', new Error('ECONNRESET'));
    this.#tell('close');
  }

  setTimeout(idleMs: number, onTimeout?: () => void): this {
    if (onTimeout !== undefined) this.once('timeout', onTimeout);
    this.#idleMs = idleMs;
    this.#touch();
    return this;
  }

  pause(): this {
    return this;
  }

  #send(arrive: () => void): void {
    const send = (): void => this.#pipe.carry(this, arrive);
    if (this.#isConnected) send();
    else this.#early.push(send);
  }

  #touch(): void {
    this.#cancelIdle();
    if (this.#idleMs === 0 || this.destroyed) return;
    this.#cancelIdle = this.#pipe.clock.schedule(() => this.#tell('timeout'), this.#idleMs);
  }

  #tell(event: 'close' | 'timeout'): void {
    this.#pipe.clock.followOn();
    this.emit(event);
  }
}
