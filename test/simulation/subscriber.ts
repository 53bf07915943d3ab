/**
 * Subscriber: what a router makes of the event plane.
 *
 * Source   a relay process and rank have one publisher id; another one begins with nothing.
 * Ids      an event with an id that it has is dropped; a hole in the ids is healed by one query for all
 *          that the relay holds.
 */
import { unpack } from 'msgpackr';
import { eventsOf, modelEventOf, type PublishedEvent } from '../support/published-events.ts';
import { RouterIndexModel } from '../support/router-index-model.ts';
import { type BlockKey, blockKey } from './block-counts.ts';

export interface Dump {
  readonly lastEventId: number;
  /** What a rank's relay holds, as an answer to a query has it: stores alone. */
  readonly events: readonly PublishedEvent[];
  /** All that it has published, with what hangs below a block that is gone. */
  readonly published: readonly BlockKey[];
}

interface Source {
  readonly rank: number;
  lastEventId: number;
  /** All that was stored and not removed. */
  blocks: Set<BlockKey>;
  /** What a router's index holds of it. */
  router: RouterIndexModel;
  /** Numbers of the messages that have come. */
  readonly sequences: Set<number>;
  isAsking: boolean;
}

interface Envelope {
  readonly publisher_id: number | bigint;
  readonly sequence: number | bigint;
  readonly payload: Uint8Array;
}

export class Subscriber {
  /** By publisher id. */
  #sources = new Map<number, Source>();
  readonly #onHole: (rank: number) => void;
  /** Holes in the ids. */
  holes = 0;

  /** `onHole` brings a dump, now or later. */
  constructor(onHole: (rank: number) => void) {
    this.#onHole = onHole;
  }

  /** A relay process has begun; it is the only source of its rank from here on. */
  announce(rank: number, publisherId: number): void {
    for (const [id, source] of this.#sources) if (source.rank === rank) this.#sources.delete(id);
    const sequences = new Set<number>();
    const empty = { blocks: new Set<BlockKey>(), router: new RouterIndexModel() };
    this.#sources.set(publisherId, { rank, lastEventId: 0, ...empty, sequences, isAsking: false });
  }

  take(bytes: Uint8Array): void {
    const { publisher_id, sequence, payload } = unpack(bytes) as Envelope;
    const source = this.#sources.get(Number(publisher_id));
    // An earlier process's message, still under way.
    if (source === undefined) return;
    source.sequences.add(Number(sequence));
    for (const event of eventsOf(payload)) this.#apply(source, event);
  }

  takeDump(rank: number, { lastEventId, events, published }: Dump): void {
    const source = this.#sourceOf(rank);
    if (source === undefined) return;
    source.isAsking = false;
    if (lastEventId < source.lastEventId) return;
    source.lastEventId = lastEventId;
    this.#empty(source);
    for (const event of events) source.router.apply(modelEventOf(event));
    for (const key of published) source.blocks.add(key);
  }

  /** It has lost what it held, and asks for it. */
  restart(): void {
    for (const source of this.#sources.values()) {
      this.#empty(source);
      source.lastEventId = 0;
      this.#ask(source);
    }
  }

  held(rank: number): BlockKey[] {
    return [...(this.#sourceOf(rank)?.blocks ?? [])].sort();
  }

  /** As a router's index has it: without what hangs below a block that is gone. */
  indexed(rank: number): BlockKey[] {
    const rows = this.#sourceOf(rank)?.router.rows() ?? [];
    return rows.map(([tier, , hash]) => blockKey(tier, BigInt(hash))).sort();
  }

  has(rank: number, key: BlockKey): boolean {
    return this.#sourceOf(rank)?.blocks.has(key) ?? false;
  }

  lastEventId(rank: number): number {
    return this.#sourceOf(rank)?.lastEventId ?? 0;
  }

  /** Messages of the rank's present source that have come, each counted once. */
  messages(rank: number): number {
    return this.#sourceOf(rank)?.sequences.size ?? 0;
  }

  #apply(source: Source, event: PublishedEvent): void {
    const { id, rank } = event;
    const eventId = Number(id);
    if (rank !== source.rank) throw new Error(`an event of rank ${rank} from ${source.rank}`);
    if (eventId <= source.lastEventId) return;
    if (eventId > source.lastEventId + 1) {
      this.holes++;
      this.#ask(source);
    }
    source.lastEventId = eventId;
    this.#hold(source, event);
  }

  #hold(source: Source, event: PublishedEvent): void {
    const { kind, tier, hashes } = event;
    source.router.apply(modelEventOf(event));
    if (kind === 'X') source.blocks.clear();
    else for (const hash of hashes) this.#set(source, blockKey(tier, hash), kind === 'S');
  }

  #empty(source: Source): void {
    source.blocks = new Set();
    source.router = new RouterIndexModel();
  }

  #set({ blocks }: Source, key: BlockKey, isHeld: boolean): void {
    if (isHeld) blocks.add(key);
    else blocks.delete(key);
  }

  #ask(source: Source): void {
    if (source.isAsking) return;
    source.isAsking = true;
    this.#onHole(source.rank);
  }

  #sourceOf(rank: number): Source | undefined {
    for (const source of this.#sources.values()) if (source.rank === rank) return source;
    return undefined;
  }
}
