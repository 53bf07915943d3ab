/**
 * Snapshot: what one query gets from the index of its source.
 *
 * Ready    once all slow work is done: the dump's turn has come, it is built, and for JSON turned. Only
 *          then is the answer taken, of that very moment.
 * Fails    as an answer, never as an exception: `TreeDumpFailed` to a router that knows it.
 */
import { messageOf } from '../../errors.ts';
import type {
  EncodedEvents,
  IndexAnswer,
  PendingAnswer,
  RecoveryIndex,
} from '../../protocol/recovery.ts';
import { type Answer, answerTo } from './answer.ts';
import type { JsonEvents } from './json-events.ts';
import type { Permits } from './permits.ts';
import type { Codec, Query } from './query.ts';

const MAX_MESSAGE_CHARACTERS = 500;

/** Of a range that needs no turn: each answer has a copy of its own, for as long as it is on its way. */
const MAX_SMALL_BYTES = 1 << 20;

/** What all queries of a process have in common. */
export interface SharedWork {
  readonly dumps: Permits;
  readonly json: JsonEvents;
}

export class Snapshot {
  readonly #query: Query;
  readonly #codec: Codec;
  readonly #index: RecoveryIndex;
  readonly #dumps: Permits;
  readonly #json: JsonEvents;
  #giveBack: (() => void) | null = null;
  #isReleased = false;
  #pending: PendingAnswer | null = null;
  #failure: string | null = null;

  constructor(query: Query, codec: Codec, index: RecoveryIndex, shared: SharedWork) {
    this.#query = query;
    this.#codec = codec;
    this.#index = index;
    this.#dumps = shared.dumps;
    this.#json = shared.json;
  }

  /** Resolves when `take` has nothing slow left to do, after `timeoutMs` with a failure; may be repeated. */
  async ready(timeoutMs: number, onError: (error: unknown) => void): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const isLate = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#failure = 'a snapshot takes too long now';
        resolve();
      }, timeoutMs);
    });
    const work = this.#prepare().catch((error: unknown) => {
      this.#failure = messageOf(error);
      onError(error);
    });
    await Promise.race([work, isLate]);
    clearTimeout(timer);
  }

  /** The answer of this moment. */
  take(): Answer {
    if (this.#failure !== null || this.#pending === null) return this.#failed(this.#failure ?? '');
    const answer = this.#pending.finish();
    return answer.kind === 'tree_dump_failed'
      ? this.#failed(answer.message)
      : answerTo(this.#query, answer);
  }

  /** The events of `answer` in the query's codec. */
  async chunksOf(answer: Answer): Promise<readonly Uint8Array[]> {
    if (answer.kind !== 'events' && answer.kind !== 'tree_dump') return [];
    const { chunks } = answer.events;
    return this.#codec === 'json' ? await this.#json.turn(chunks) : chunks;
  }

  /** The answer is with the router, or will never be. */
  release(): void {
    this.#isReleased = true;
    this.#giveBack?.();
    this.#giveBack = null;
  }

  async #prepare(): Promise<void> {
    if (this.#giveBack === null && (await this.#needsTurn())) await this.#awaitTurn();
    if (this.#codec === 'json') await this.#turnEarly((await this.#ask()).finish());
    this.#pending = await this.#ask();
  }

  /** Only the answer tells whether a range is answered by a dump, or by so much that it counts as one. */
  async #needsTurn(): Promise<boolean> {
    if (this.#query.startEventId === null) return true;
    // Not kept while the turn is awaited: hundreds of them would fill the memory.
    const answer = (await this.#ask()).finish();
    return answer.kind === 'tree_dump' || (answer.kind === 'events' && isLarge(answer.events));
  }

  /** Most of the work of JSON, before the answer is fixed. */
  async #turnEarly(early: IndexAnswer): Promise<void> {
    if (this.#codec === 'msgpack') return;
    if (early.kind === 'events' || early.kind === 'tree_dump') {
      await this.#json.turnAhead(early.events.chunks);
    }
  }

  async #ask(): Promise<PendingAnswer> {
    const { startEventId, endEventId } = this.#query;
    const pending = this.#index.answer(clamped(startEventId), clamped(endEventId));
    await pending.prepare();
    return pending;
  }

  async #awaitTurn(): Promise<void> {
    const giveBack = await this.#dumps.take();
    if (this.#isReleased) giveBack();
    else this.#giveBack = giveBack;
  }

  #failed(why: string): Answer {
    const message = why.slice(0, MAX_MESSAGE_CHARACTERS);
    const { lastEventId } = this.#index;
    return this.#query.supportsTreeDumpFailed
      ? { kind: 'tree_dump_failed', lastEventId, message }
      : { kind: 'error', message: `worker tree dump failed: ${message}` };
  }
}

function isLarge({ chunks }: EncodedEvents): boolean {
  return chunks.reduce((sum, { length }) => sum + length, 0) > MAX_SMALL_BYTES;
}

/** No source gets that far; the router's own digits go back to it all the same. */
function clamped(eventId: bigint | null): number | null {
  if (eventId === null) return null;
  return eventId > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : Number(eventId);
}
