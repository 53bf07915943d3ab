/**
 * RouterRank: what a stock router holds of one rank, and when it asks for what it has missed.
 *
 * Source    one at a time; another publisher id, or none, and all that it held is gone.
 * Ids       one that it has is ignored; behind a hole it asks, and keeps the newest events until it is
 *           answered. Of those it then applies what is newer than the answer, and never asks for a hole
 *           between them: `holes` lists what it has skipped so.
 * Source    ai-dynamo/dynamo 1.6.1, KvRouter; run against it in `npm run test:interop`.
 */
import { modelEventOf, type PublishedEvent } from '../support/published-events.ts';
import { type HeldRow, RouterIndexModel } from '../support/router-index-model.ts';
import type { QueryAnswer } from './router-answer.ts';

/** How a router asks a source. */
export interface SourceTarget {
  readonly publisherId: number;
  readonly workerId: bigint;
  readonly transport: { readonly tcp?: string | undefined; readonly nats_tcp?: string | undefined };
  readonly codec: 'msgpack' | 'json';
}

/** A query for one rank, however many attempts it takes. */
export interface RunningQuery {
  /** Attempts begun. */
  readonly attempts: number;
  cancel(): void;
}

export type AskSource = (target: SourceTarget, startEventId: number | null) => RunningQuery;

/** Events that wait for an answer; the oldest go. */
const MAX_BUFFERED = 1024;

export class RouterRank {
  readonly rank: number;
  readonly #ask: AskSource;
  #target: SourceTarget | null = null;
  #router = new RouterIndexModel();
  #cursor = 0;
  #buffered: PublishedEvent[] = [];
  query: RunningQuery | null = null;
  /** Ids that were skipped for good, from the present source, since its last dump. */
  holes: number[] = [];
  /** Answers that no relay may give. */
  faults: string[] = [];

  constructor(rank: number, ask: AskSource) {
    this.rank = rank;
    this.#ask = ask;
  }

  get publisherId(): number | null {
    return this.#target?.publisherId ?? null;
  }

  get cursor(): number {
    return this.#cursor;
  }

  rows(): HeldRow[] {
    return this.#router.rows();
  }

  /** Null: there is none, or more than one. */
  follow(target: SourceTarget | null): void {
    if (target?.publisherId === this.publisherId) return;
    this.query?.cancel();
    this.query = null;
    this.#target = target;
    this.#cursor = 0;
    this.#buffered = [];
    // A source that is on its way out may answer under its next publisher id.
    this.faults = [];
    this.#empty();
    if (target !== null) this.#begin(null);
  }

  /** The events of one message. */
  take(publisherId: number, events: readonly PublishedEvent[]): void {
    if (publisherId !== this.publisherId) return;
    for (const event of events) this.#takeEvent(event);
  }

  /** Null: no attempt was answered, and there will be no other one. */
  takeAnswer(answer: QueryAnswer | null): void {
    this.query = null;
    if (answer?.kind === 'too_new' || answer?.kind === 'invalid_range') {
      this.faults.push(`it was answered ${answer.kind}`);
    }
    if (answer?.kind === 'tree_dump_failed') {
      // Nothing moves: the next event shows the hole again.
      this.#buffered = [];
      return;
    }
    if (answer?.kind === 'tree_dump') this.#empty();
    if (answer?.kind === 'tree_dump' || answer?.kind === 'events') {
      const { events, lastEventId } = answer;
      const isDump = answer.kind === 'tree_dump';
      if (events.some(({ rank, workerId }) => !this.#isOurs(rank, workerId))) {
        this.faults.push('an answer with events of another source');
      }
      if (isDump && events.some(({ kind }) => kind === 'X'))
        this.faults.push('a dump with a clear');
      for (const event of events) {
        if (isDump || Number(event.id) > this.#cursor) this.#router.apply(modelEventOf(event));
      }
      this.#cursor = isDump ? lastEventId : Math.max(this.#cursor, lastEventId);
    }
    this.#applyBuffered();
  }

  #isOurs(rank: number, workerId: bigint): boolean {
    return rank === this.rank && workerId === this.#target?.workerId;
  }

  #takeEvent(event: PublishedEvent): void {
    const eventId = Number(event.id);
    if (this.query !== null) {
      this.#buffered.push(event);
      if (this.#buffered.length > MAX_BUFFERED) this.#buffered.shift();
    } else if (eventId === this.#cursor + 1) {
      this.#apply(event);
    } else if (eventId > this.#cursor) {
      this.#buffered = [event];
      this.#begin(this.#cursor + 1);
    }
  }

  #begin(startEventId: number | null): void {
    if (this.#target !== null) this.query = this.#ask(this.#target, startEventId);
  }

  #applyBuffered(): void {
    const buffered = this.#buffered.sort((one, other) => Number(one.id - other.id));
    this.#buffered = [];
    for (const event of buffered) {
      const eventId = Number(event.id);
      for (let id = this.#cursor + 1; id < eventId; id++) this.holes.push(id);
      if (eventId > this.#cursor) this.#apply(event);
    }
  }

  #apply(event: PublishedEvent): void {
    this.#cursor = Number(event.id);
    this.#router.apply(modelEventOf(event));
  }

  #empty(): void {
    this.#router = new RouterIndexModel();
    this.holes = [];
  }
}
