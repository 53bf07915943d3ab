/**
 * ReplayPath: an engine's replay socket and the way to it and back.
 *
 * Request  reaches whichever life of the engine is there when it arrives.
 * Answer   batches in order, then an end marker; on a bad path some of it is lost, but never the first
 *          batch, as the engine's send queue is empty then. Each request has its own connection, so that
 *          answers overlap with each other and with live batches.
 * Dropped  answers are read on for a while, as the real client does.
 */
import type { ReplayTransport } from '../../src/listener/engine-stream.ts';
import type { Random } from './random.ts';
import type { SimulatedEngine } from './simulated-engine.ts';
import type { SimulatedListener } from './simulated-listener.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { EngineBatch } from './witness.ts';

/** What happens to an answer on the way, unless it arrives whole. */
export const BAD_ANSWERS = [
  /** Batches in the middle are lost on the send path, mostly with the end marker. */
  'holes',
  /** Its rest is lost, and the end marker. */
  'cut',
  'endless',
  /** Nobody takes the request. */
  'silent',
  /** Complete, but when nobody waits for it any more. */
  'late',
] as const;
export type AnswerKind = 'whole' | (typeof BAD_ANSWERS)[number];

/** The engine looks for a request, then waits as long for a batch. */
const MAX_WAIT_MS = 100;
const LATE_MS = 10_000;

interface Asked {
  readonly id: number;
  isConnected: boolean;
  isDropped: boolean;
  isClosed: boolean;
}

export class ReplayPath implements ReplayTransport {
  readonly #engine: SimulatedEngine;
  readonly #listener: SimulatedListener;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #log: (text: string) => void;
  readonly #asks = new Map<number, Asked>();
  /** What happens to the next answers, one of them at random. */
  kinds: readonly AnswerKind[] = ['whole'];
  blockedUntilMs = 0;

  constructor(
    engine: SimulatedEngine,
    listener: SimulatedListener,
    clock: VirtualClock,
    random: Random,
    log: (text: string) => void,
  ) {
    this.#engine = engine;
    this.#listener = listener;
    this.#clock = clock;
    this.#random = random;
    this.#log = log;
  }

  ask(id: number, start: bigint): void {
    const asked: Asked = { id, isConnected: false, isDropped: false, isClosed: false };
    this.#asks.set(id, asked);
    this.#log(`ask ${id} from ${start}`);
    const { idleMs } = this.#listener;
    this.#tryConnect(asked, start);
    this.#clock.schedule(() => {
      if (asked.isConnected || asked.isClosed || asked.isDropped) return;
      this.#listener.takeReplayFailure(id);
    }, idleMs);
  }

  drop(id: number): void {
    const asked = this.#asks.get(id);
    if (asked === undefined) return;
    this.#asks.delete(id);
    asked.isDropped = true;
    if (!asked.isConnected) asked.isClosed = true;
    this.#clock.schedule(() => {
      asked.isClosed = true;
    }, LATE_MS);
  }

  #tryConnect(asked: Asked, start: bigint): void {
    this.#clock.schedule(
      () => {
        if (asked.isClosed) return;
        const isThere = this.#engine.isUp && this.#clock.nowMs() >= this.blockedUntilMs;
        if (isThere) this.#request(asked, start);
        else this.#clock.schedule(() => this.#tryConnect(asked, start), 100);
      },
      this.#random.pick([0.5, 1, 3]),
    );
  }

  #request(asked: Asked, start: bigint): void {
    asked.isConnected = true;
    const kind = this.#random.pick(this.kinds);
    if (kind === 'silent') {
      this.#log(`ask ${asked.id} is not answered`);
      return;
    }
    const lateMs = kind === 'late' ? 12 * this.#listener.idleMs : 0;
    const waitMs = this.#random.next() * MAX_WAIT_MS + 1;
    const { life } = this.#engine;
    this.#clock.schedule(() => {
      if (this.#engine.life === life && this.#engine.isUp) this.#answer(asked, start, kind, lateMs);
    }, waitMs);
  }

  #answer(asked: Asked, start: bigint, kind: AnswerKind, lateMs: number): void {
    const paceMs = this.#random.pick([0.01, 0.1, 2]);
    const batches = this.#engine.answer(start, 1);
    const { witness, life } = this.#engine;
    witness.answered[life] = witness.life.length;
    const { sent, hasEnd } = this.#lossesOf(batches, kind);
    const ends = `${sent[0]?.sequence ?? ''}..${sent.at(-1)?.sequence ?? ''}`;
    // Whether what is under way outlives the process that sent it.
    const survives = this.#random.chance(0.5);
    this.#log(`ask ${asked.id} from ${start} answered, ${kind}: ${sent.length} (${life}:${ends})`);
    let atMs = lateMs + this.#random.pick([0.5, 5]);
    for (const batch of sent) {
      atMs += paceMs;
      this.#deliver(asked, survives ? null : life, atMs, () => {
        this.#listener.takeReplayed(asked.id, batch, !asked.isDropped);
      });
    }
    if (hasEnd) this.#deliver(asked, survives ? null : life, atMs, () => this.#end(asked));
  }

  #lossesOf(
    batches: readonly EngineBatch[],
    kind: AnswerKind,
  ): { sent: readonly EngineBatch[]; hasEnd: boolean } {
    const random = this.#random;
    // An end marker that stands alone is the first message, which no full queue drops.
    if (kind === 'whole' || kind === 'late' || batches.length === 0)
      return { sent: batches, hasEnd: true };
    if (kind === 'endless') return { sent: batches, hasEnd: false };
    if (kind === 'cut') {
      return { sent: batches.slice(0, random.between(1, batches.length)), hasEnd: false };
    }
    const sent = batches.filter((_, index) => index === 0 || random.chance(0.6));
    return { sent, hasEnd: random.chance(0.3) };
  }

  /** Where a life is given, it has to last until then. */
  #deliver(asked: Asked, life: number | null, delayMs: number, deliver: () => void): void {
    this.#clock.schedule(() => {
      const isSenderGone = life !== null && (life !== this.#engine.life || !this.#engine.isUp);
      if (asked.isClosed || isSenderGone || this.#clock.nowMs() < this.blockedUntilMs) return;
      deliver();
    }, delayMs);
  }

  #end(asked: Asked): void {
    asked.isClosed = true;
    this.#asks.delete(asked.id);
    this.#listener.takeReplayEnd(asked.id);
  }
}
