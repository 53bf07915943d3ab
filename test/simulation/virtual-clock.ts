/**
 * VirtualClock: time that passes only from one event to the next.
 *
 * Installed, it stands behind the timers, the clocks and Math.random() of this process, so that the real
 * parts run on it as they are. No timer of the real event loop may be set meanwhile; promises go on.
 */
import type { StreamClock } from '../../src/listener/engine-stream.ts';
import type { Random } from './random.ts';

/** What a timer is cancelled, or begun anew, by. */
class Handle {
  isCancelled = false;
  /** Entries from before it was begun anew are void. */
  runs = 0;
  readonly #add: () => void;

  constructor(add: (handle: Handle) => void) {
    this.#add = () => add(this);
    this.#add();
  }

  refresh(): this {
    this.runs++;
    this.#add();
    return this;
  }

  unref(): this {
    return this;
  }
}

interface Entry {
  readonly atMs: number;
  /** Of two entries for one moment, the older one comes first. */
  readonly order: number;
  readonly callback: () => void;
  readonly handle: Handle;
  /** Its handle's, when it was added. */
  readonly run: number;
}

/** 2026, in Unix ms. */
const WALL_START_MS = 1_770_000_000_000;

/** A promise that is settled in an event is followed up to here before the next one. */
const MICROTASKS = 4;

/** The real one: whatever is settled has been followed to its end before. */
const nextTurn = globalThis.setImmediate;

export class VirtualClock implements StreamClock {
  #nowMs = 1000;
  #nextOrder = 0;
  #followsOn = false;
  /** Timers have long chains as well, which takes its time. */
  followsTimers: () => boolean = () => false;
  /** A binary heap: the entry that is due first comes first. */
  readonly #heap: Entry[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return WALL_START_MS + this.#nowMs;
  }

  /** Returns what takes it back. */
  schedule(callback: () => void, delayMs: number): () => void {
    const handle = this.#add(callback, delayMs);
    return () => {
      handle.isCancelled = true;
    };
  }

  /** A long chain of promises hangs on the event that happens now; it ends before the next one. */
  followOn(): void {
    this.#followsOn = true;
  }

  /** Lets time pass, and all that is due meanwhile happen. */
  async run(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= endMs; ) {
      this.#removeFirst();
      if (!first.handle.isCancelled && first.run === first.handle.runs) {
        this.#nowMs = Math.max(this.#nowMs, first.atMs);
        first.callback();
        if (this.#followsOn) await new Promise((resolve) => nextTurn(resolve));
        else for (let count = 0; count < MICROTASKS; count++) await Promise.resolve();
        this.#followsOn = false;
      }
      first = this.#heap[0];
    }
    this.#nowMs = endMs;
  }

  /** Takes the place of the process's timers and clocks; returns what gives them back. */
  install(random: Random): () => void {
    const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis;
    const dateNow = Date.now;
    const mathRandom = Math.random;
    const cancel = (handle: Handle | undefined): void => {
      if (handle !== undefined) handle.isCancelled = true;
    };
    Object.assign(globalThis, {
      setTimeout: (callback: () => void, delayMs = 0) => this.#addTimer(callback, delayMs),
      clearTimeout: cancel,
      // At least 1 ms, as in Node: a shorter rest can be too small to move this clock on.
      setInterval: (callback: () => void, delayMs = 0) =>
        this.#addInterval(callback, Math.max(1, delayMs)),
      clearInterval: cancel,
      setImmediate: (callback: () => void) => this.#addTimer(callback, 0),
    });
    Date.now = () => this.wallMs();
    Math.random = () => random.next();
    Object.defineProperty(performance, 'now', { value: () => this.#nowMs, configurable: true });
    return () => {
      Object.assign(globalThis, {
        setTimeout,
        clearTimeout,
        setInterval,
        clearInterval,
        setImmediate,
      });
      Date.now = dateNow;
      Math.random = mathRandom;
      // Its own property hid the one of the prototype.
      Reflect.deleteProperty(performance, 'now');
    };
  }

  #addTimer(callback: () => void, delayMs: number): Handle {
    return this.#add(() => {
      if (this.followsTimers()) this.followOn();
      callback();
    }, delayMs);
  }

  #addInterval(callback: () => void, delayMs: number): Handle {
    const interval = this.#add(() => {
      callback();
      if (!interval.isCancelled) interval.refresh();
    }, delayMs);
    return interval;
  }

  #add(callback: () => void, delayMs: number): Handle {
    return new Handle((handle) => {
      const atMs = this.#nowMs + Math.max(0, delayMs);
      this.#insert({ atMs, order: this.#nextOrder++, callback, handle, run: handle.runs });
    });
  }

  #insert(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Entry, entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry))
        child++;
      if (isBefore(last, heap[child] as Entry)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
