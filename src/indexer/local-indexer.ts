/**
 * LocalIndexer: what a relay has published, for whoever missed it: the newest events and a dump.
 *
 * In       every router batch, before it is sent, so that an answer covers what a router may have seen.
 * Out      answers by the table of the publisher's query service (Dynamo 1.6.1): events from the start
 *          asked for to the newest; a dump where they no longer reach back so far, or none was named.
 * Bounds   those of BlockIndex and EventRing; one dump is built at a time.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { Publisher } from '../protocol/publisher.ts';
import type {
  EncodedEvents,
  IndexAnswer,
  PendingAnswer,
  RecoveryIndex,
} from '../protocol/recovery.ts';
import type { RouterBatch } from '../protocol/router-event.ts';
import { BlockIndex } from './block-index.ts';
import { type Dump, DumpBuilder, type Slicing } from './dump-builder.ts';
import { EventRing, type EventRingOptions } from './event-ring.ts';

export interface LocalIndexerOptions extends EventRingOptions {
  /** In whose name the blocks of a dump are told. */
  readonly publisher: Pick<Publisher, 'events'>;
  readonly maxBlocks: number;
  /** How a dump is cut into slices; a test that looks between two sets it. */
  readonly slicing?: Slicing;
}

/** Blocks of an index that can be dumped within one slice. */
const SMALL_INDEX_BLOCKS = 50_000;
const MAX_TRIES = 4;

export class LocalIndexer implements RecoveryIndex {
  readonly blocks: BlockIndex;
  readonly ring: EventRing;
  readonly #maxTailEvents: number;
  readonly #dumps: DumpBuilder;

  constructor(options: LocalIndexerOptions, metrics: RelayMetrics) {
    this.blocks = new BlockIndex(options.maxBlocks, metrics);
    this.ring = new EventRing(options);
    this.#maxTailEvents = Math.floor(options.maxEvents / 2);
    this.#dumps = new DumpBuilder({
      blocks: this.blocks,
      publisher: options.publisher,
      lastEventId: () => this.ring.lastEventId,
      ...(options.slicing !== undefined && { slicing: options.slicing }),
    });
  }

  get lastEventId(): number {
    return this.ring.lastEventId;
  }

  /** Ids begin at 1 again; what is held stays, and is told by dumps alone. */
  beginIncarnation(): void {
    this.ring.restart();
    this.#dumps.outdate();
  }

  record(batch: RouterBatch): void {
    this.ring.push(batch);
    this.blocks.lookAhead(batch.events);
    for (const event of batch.events) {
      this.blocks.apply(event);
      // What a clear took is not undone by the events after it.
      if (event.type === 'cleared') this.#dumps.outdate();
    }
  }

  answer(startEventId: number | null, endEventId: number | null): PendingAnswer {
    let dump: Dump | null = null;
    return {
      prepare: async () => {
        if (this.#answerOfRing(startEventId, endEventId) === null) dump = await this.#freshDump();
      },
      finish: () => this.#answerOfRing(startEventId, endEventId) ?? this.#answerOfDump(dump),
    };
  }

  /** A dump of this moment, or nearly so, without the events since; null where none can be made. */
  async dump(): Promise<Dump | null> {
    const latest = this.#dumps.latest;
    return latest?.baseEventId === this.lastEventId ? latest : await this.#dumps.build();
  }

  free(): void {
    this.#dumps.close();
    this.blocks.free();
  }

  /** Null where only a dump will do. */
  #answerOfRing(start: number | null, end: number | null): IndexAnswer | null {
    const { lastEventId, firstEventId, isEmpty } = this.ring;
    if (start !== null && end !== null && end < start) {
      return { kind: 'invalid_range', startId: start, endId: end };
    }
    if (start === null || isEmpty || start < firstEventId) return null;
    if (start > lastEventId) {
      const requestedEnd = end ?? lastEventId;
      return { kind: 'too_new', requestedStart: start, requestedEnd, newestAvailable: lastEventId };
    }
    return { kind: 'events', events: this.#eventsFrom(start), lastEventId };
  }

  #eventsFrom(start: number): EncodedEvents {
    return { count: this.lastEventId - start + 1, chunks: [this.ring.copyFrom(start)] };
  }

  async #freshDump(): Promise<Dump | null> {
    const latest = this.#dumps.latest;
    if (latest !== null && this.#tailOf(latest) <= this.#maxTailEvents) return latest;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const dump = await this.#dumps.build();
      if (dump === null || this.#reaches(dump)) return dump;
    }
    return null;
  }

  #answerOfDump(prepared: Dump | null): IndexAnswer {
    const { lastEventId } = this;
    let dump = prepared;
    if (dump !== null && (dump !== this.#dumps.latest || !this.#reaches(dump))) dump = null;
    if (dump === null && this.blocks.size <= SMALL_INDEX_BLOCKS && !this.#dumps.isClosed) {
      dump = this.#dumps.buildAtOnce();
    }
    if (dump === null) {
      const message = this.#dumps.failure || 'Events came faster than the index could be read';
      return { kind: 'tree_dump_failed', lastEventId, message };
    }
    const tail = this.#eventsFrom(dump.baseEventId + 1);
    const { count, chunks } = dump.events;
    const events = { count: count + tail.count, chunks: [...chunks, ...tail.chunks] };
    return { kind: 'tree_dump', events, lastEventId };
  }

  #tailOf({ baseEventId }: Dump): number {
    return this.#reaches({ baseEventId })
      ? this.lastEventId - baseEventId
      : Number.POSITIVE_INFINITY;
  }

  /** Whether the ring still has all events since the dump was begun. */
  #reaches({ baseEventId }: Pick<Dump, 'baseEventId'>): boolean {
    return this.ring.firstEventId <= baseEventId + 1;
  }
}
