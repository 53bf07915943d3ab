/**
 * SimulatedEngine: the publisher of one engine process after the other, as the real ones are built.
 *
 * Numbers  from 0 in each life; a batch that cannot be encoded uses one up and is in no buffer.
 * Thread   one for all: while it answers a replay it publishes nothing.
 * Buffer   the newest batches, for replays; a restart begins with none.
 */
import { Packr } from 'msgpackr';
import type { StorageTier } from '../../src/protocol/storage-tier.ts';
import { Clr, positional, Rm, St } from '../support/trials.ts';
import { BlockCounts, type CacheOp } from './block-counts.ts';
import { type CacheHabits, PrefixCache } from './prefix-cache.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { EngineBatch, Witness } from './witness.ts';

const packr = new Packr({ useRecords: false, variableMapSize: true });

const MEDIA: Readonly<Record<StorageTier, string>> = {
  device: 'GPU',
  host_pinned: 'CPU',
  disk: 'DISK',
  external: 'EXTERNAL',
};

export interface EngineOptions {
  readonly ranks: readonly number[];
  readonly bufferBatches: number;
  /** Between two batches, on average. */
  readonly stepMs: number;
  readonly habits: CacheHabits;
  readonly asMaps: boolean;
}

export class SimulatedEngine {
  readonly witness: Witness;
  /** What it really holds, whoever was told. */
  counts: BlockCounts = new BlockCounts();
  life = -1;
  isUp = false;
  /** It has work to do. */
  isBusy = true;
  unencodableRate = 0;
  onPublish: (batch: EngineBatch) => void = () => undefined;
  readonly #options: EngineOptions;
  readonly #clock: VirtualClock;
  readonly #random: Random;
  #caches = new Map<number, PrefixCache>();
  #buffer: EngineBatch[] = [];
  #nextSequence = 0;
  #answersUntilMs = 0;
  /** This process's clock against true time. */
  #wallOffsetMs = 0;

  constructor(options: EngineOptions, clock: VirtualClock, random: Random, witness: Witness) {
    this.#options = options;
    this.#clock = clock;
    this.#random = random;
    this.witness = witness;
  }

  /** A new process; `stepsAhead` batches are out before anybody can be connected. */
  start(stepsAhead = 0): void {
    const { ranks, habits } = this.#options;
    this.life++;
    this.isUp = true;
    this.witness.lives[this.life] = [];
    this.counts = new BlockCounts();
    this.#buffer = [];
    this.#nextSequence = 0;
    this.#answersUntilMs = 0;
    this.#wallOffsetMs = this.#random.between(-200, 200);
    const random = this.#random.fork(`life ${this.life}`);
    this.#caches = new Map(
      ranks.map((rank) => [rank, new PrefixCache(random.fork(`rank ${rank}`), habits)]),
    );
    for (let step = 0; step < stepsAhead; step++) this.step();
    this.#scheduleStep(this.life);
  }

  kill(): void {
    this.isUp = false;
  }

  step(): void {
    const rank = this.#random.pick(this.#options.ranks);
    this.#publish(rank, this.#caches.get(rank)?.step() ?? []);
  }

  /** As much work at once as a batch holds of a busy engine. */
  burst(eventCount: number): void {
    const rank = this.#random.pick(this.#options.ranks);
    this.#publish(rank, this.#caches.get(rank)?.step(eventCount) ?? []);
  }

  /** One new block a rank. */
  storeNew(): void {
    for (const [rank, cache] of this.#caches) this.#publish(rank, [cache.storeNew()]);
  }

  /** Numbers, buffers and publishes one batch. */
  #publish(rank: number, ops: readonly CacheOp[]): void {
    const isEncodable = !this.#random.chance(this.unencodableRate);
    const sequence = this.#nextSequence++;
    const payload = isEncodable ? this.#encode(rank, ops) : null;
    const batch: EngineBatch = { life: this.life, sequence, rank, ops, payload };
    for (const op of ops) this.counts.apply(rank, op);
    this.witness.noteBatch(batch);
    if (!isEncodable) return;
    this.#buffer.push(batch);
    if (this.#buffer.length > this.#options.bufferBatches) this.#buffer.shift();
    this.onPublish(batch);
  }

  /** The buffered batches from `start` on; to write them takes the thread `durationMs`. */
  answer(start: bigint, durationMs: number): EngineBatch[] {
    this.#answersUntilMs = this.#clock.nowMs() + durationMs;
    return this.#buffer.filter(({ sequence }) => BigInt(sequence) >= start);
  }

  #scheduleStep(life: number): void {
    const { stepMs } = this.#options;
    // Bursts and pauses, stepMs apart on average.
    const waitMs = this.#random.chance(0.5)
      ? this.#random.next() * 4
      : 2 * this.#random.next() * stepMs * 2;
    const readyMs = this.#answersUntilMs - this.#clock.nowMs();
    this.#clock.schedule(
      () => {
        if (this.life !== life || !this.isUp) return;
        if (this.isBusy && this.#clock.nowMs() >= this.#answersUntilMs) this.step();
        this.#scheduleStep(life);
      },
      Math.max(waitMs, readyMs),
    );
  }

  #encode(rank: number, ops: readonly CacheOp[]): Buffer {
    const events = ops.map((op) => {
      const event = eventOf(op);
      return this.#options.asMaps ? event : positional(event, event.type === 'BlockStored' ? 8 : 3);
    });
    // Never a whole number, which would not be written as a float.
    const seconds = Math.floor(this.#clock.wallMs() + this.#wallOffsetMs) / 1000 + 0.000_01;
    return Buffer.from(packr.pack([seconds, events, rank]));
  }
}

function eventOf(op: CacheOp): Readonly<Record<string, unknown>> {
  if (op.kind === 'clear') return Clr;
  const medium = MEDIA[op.tier];
  if (op.kind === 'remove') return Rm(op.hashes, { medium });
  return St(op.hashes, { medium, ...(op.parent !== null && { parent: op.parent }) });
}
