/**
 * Subscriber: what becomes of the event plane where nothing is lost behind its server.
 *
 * Source   a rank's publisher id of the moment; another one begins with what its relay has stored before.
 * Ids      an event with an id that it has is dropped; a hole in the ids is healed by one query for all
 *          that the relay holds.
 */
import type { PublishedEvent } from '../support/published-events.ts';
import { type BlockKey, blockKey } from './block-counts.ts';
import type { PlaneDelivery } from './plane-delivery.ts';

export interface Dump {
  readonly lastEventId: number;
  /** All that its relay has stored and not removed, with what hangs below a block that is gone. */
  readonly published: readonly BlockKey[];
}

interface Source {
  readonly rank: number;
  publisherId: number;
  lastEventId: number;
  /** All that was stored and not removed. */
  blocks: Set<BlockKey>;
  /** Those that have come, under whichever publisher id of the process. */
  readonly messages: Set<string>;
  isAsking: boolean;
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
    const [blocks, messages] = [new Set<BlockKey>(), new Set<string>()];
    const source = { rank, publisherId, lastEventId: 0, blocks, messages, isAsking: false };
    this.#sources.set(publisherId, source);
  }

  /** The same process goes on under another publisher id. */
  supersede(rank: number, publisherId: number, dump: Dump): void {
    const source = this.#sourceOf(rank);
    if (source === undefined) return;
    this.#sources.set(publisherId, source);
    source.publisherId = publisherId;
    source.lastEventId = 0;
    this.takeDump(rank, dump);
  }

  take({ publisherId, sequence, events }: PlaneDelivery): void {
    const source = this.#sources.get(publisherId);
    // An earlier process's message, still under way.
    if (source === undefined) return;
    source.messages.add(`${publisherId} ${sequence}`);
    // Under an earlier publisher id.
    if (source.publisherId !== publisherId) return;
    for (const event of events) this.#apply(source, event);
  }

  takeDump(rank: number, { lastEventId, published }: Dump): void {
    const source = this.#sourceOf(rank);
    if (source === undefined) return;
    source.isAsking = false;
    if (lastEventId < source.lastEventId) return;
    source.lastEventId = lastEventId;
    this.#empty(source);
    for (const key of published) source.blocks.add(key);
  }

  /** It has lost what it held, and asks for it. */
  restart(): void {
    for (const source of new Set(this.#sources.values())) {
      this.#empty(source);
      source.lastEventId = 0;
      this.#ask(source);
    }
  }

  held(rank: number): BlockKey[] {
    return [...(this.#sourceOf(rank)?.blocks ?? [])].sort();
  }

  has(rank: number, key: BlockKey): boolean {
    return this.#sourceOf(rank)?.blocks.has(key) ?? false;
  }

  lastEventId(rank: number): number {
    return this.#sourceOf(rank)?.lastEventId ?? 0;
  }

  /** Messages of the rank's present process that have come, each counted once. */
  messages(rank: number): number {
    return this.#sourceOf(rank)?.messages.size ?? 0;
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
    if (kind === 'X') source.blocks.clear();
    else for (const hash of hashes) this.#set(source, blockKey(tier, hash), kind === 'S');
  }

  #empty(source: Source): void {
    source.blocks = new Set();
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
