/**
 * DumpBuilder: all that an index holds, as store events, built in slices and shared by all who ask.
 *
 * Base     the newest event when it was begun. What came since may or may not be in it, and follows it as
 *          the ring's events, so that whoever takes both ends with the same blocks.
 * Keeps    a small dump until it is outdated; a large one only as long as somebody holds it.
 * Fails    when clears keep coming, or the index ends: null, and the reason in `failure`.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { allocateBlock, type KernelBlock, releaseBlock, views } from '../kernel/kernel.ts';
import { MAX_DUMP_EVENT_BYTES } from '../kernel/router-tiers.ts';
import type { Publisher } from '../protocol/publisher.ts';
import type { EncodedEvents } from '../protocol/recovery.ts';
import type { RouterEventEncoder } from '../protocol/router-event.ts';
import type { BlockIndex, TierOfRank } from './block-index.ts';

export interface Dump {
  readonly events: EncodedEvents;
  readonly byteCount: number;
  readonly baseEventId: number;
}

export interface DumpSource {
  readonly blocks: BlockIndex;
  readonly publisher: Pick<Publisher, 'events'>;
  readonly lastEventId: () => number;
  readonly slicing?: Slicing;
}

export interface Slicing {
  /** Lets others have the event loop. */
  readonly pause: () => Promise<unknown>;
  /** How long a slice may hold it. */
  readonly sliceMs: number;
  /** Most bytes written between two looks at the clock, above those of one event. */
  readonly partBytes: number;
}

export const SLICING: Slicing = { pause: () => nextTurn(), sliceMs: 2, partBytes: 1 << 18 };

const MAX_TRIES = 4;
/** Largest dump that is kept although nobody waits for it. */
const KEPT_BYTES = 4 << 20;

export class DumpBuilder {
  readonly #source: DumpSource;
  readonly #slicing: Slicing;
  #building: Promise<Dump | null> | null = null;
  #latest: { deref(): Dump | undefined } | null = null;
  /** Counts what makes a dump worthless, begun or finished. */
  #outdated = 0;
  isClosed = false;
  /** Why the last build came to nothing. */
  failure = '';

  constructor(source: DumpSource) {
    this.#source = source;
    this.#slicing = source.slicing ?? SLICING;
  }

  /** The last dump, where it still is one. */
  get latest(): Dump | null {
    return this.#latest?.deref() ?? null;
  }

  /** One build at a time: who asks meanwhile gets the same. */
  build(): Promise<Dump | null> {
    this.#building ??= this.#build().finally(() => {
      this.#building = null;
    });
    return this.#building;
  }

  /** The whole dump within this call; for indexes that are small. */
  buildAtOnce(): Dump {
    // One that is being built has lost its place in the tiers, and begins again.
    this.outdate();
    const writer = new DumpWriter(this.#source, this.#slicing.partBytes);
    while (writer.writePart());
    return this.#keep(writer.finish());
  }

  /** A dump from before now describes nothing any more. */
  outdate(): void {
    this.#outdated++;
    this.#latest = null;
  }

  close(): void {
    this.isClosed = true;
    this.outdate();
  }

  async #build(): Promise<Dump | null> {
    for (let tries = 0; tries < MAX_TRIES && !this.isClosed; tries++) {
      const dump = await this.#buildInSlices(this.#outdated);
      if (dump !== null) return this.#keep(dump);
    }
    this.failure = this.isClosed
      ? 'The index has been closed'
      : `The index was cleared ${MAX_TRIES} times while it was read`;
    return null;
  }

  async #buildInSlices(outdated: number): Promise<Dump | null> {
    const { sliceMs, pause } = this.#slicing;
    const writer = new DumpWriter(this.#source, this.#slicing.partBytes);
    for (let startMs = performance.now(); writer.writePart(); ) {
      if (performance.now() - startMs < sliceMs) continue;
      await pause();
      if (this.#outdated !== outdated) {
        writer.finish();
        return null;
      }
      startMs = performance.now();
    }
    return writer.finish();
  }

  #keep(dump: Dump): Dump {
    this.#latest = dump.byteCount <= KEPT_BYTES ? { deref: () => dump } : new WeakRef(dump);
    return dump;
  }
}

/** One pass over all tiers; the device tier first, each tier's events numbered from 0. */
class DumpWriter {
  readonly #encoder: RouterEventEncoder;
  readonly #baseEventId: number;
  readonly #tiers: TierOfRank[];
  readonly #room: KernelBlock;
  readonly #roomBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #count = 0;
  #byteCount = 0;
  #nextEventId = 0;
  #tier: TierOfRank | undefined;

  constructor({ blocks, publisher, lastEventId }: DumpSource, partBytes: number) {
    this.#roomBytes = MAX_DUMP_EVENT_BYTES + partBytes;
    this.#room = allocateBlock(this.#roomBytes);
    this.#encoder = publisher.events;
    this.#baseEventId = lastEventId();
    this.#tiers = blocks.tiers.reverse();
    this.#startNextTier();
  }

  /** Writes a part; false where nothing was left. */
  writePart(): boolean {
    if (this.#tier === undefined) return false;
    const { dpRank, storageTier, tier } = this.#tier;
    const template = this.#encoder.storedTemplate(storageTier);
    const options = { template, firstEventId: this.#nextEventId, dpRank };
    const part = tier.dumpPart(this.#room.address, this.#roomBytes, options);
    if (part.events > 0) {
      const { address } = this.#room;
      this.#chunks.push(views.u8.slice(address, address + part.bytes));
      this.#count += part.events;
      this.#byteCount += part.bytes;
      this.#nextEventId += part.events;
    }
    if (tier.dumpHasEnded) this.#startNextTier();
    return true;
  }

  finish(): Dump {
    releaseBlock(this.#room);
    const events = { count: this.#count, chunks: this.#chunks };
    return { events, byteCount: this.#byteCount, baseEventId: this.#baseEventId };
  }

  #startNextTier(): void {
    this.#tier = this.#tiers.pop();
    this.#tier?.tier.startDump();
    this.#nextEventId = 0;
  }
}
