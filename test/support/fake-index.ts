/** A plain index that answers by the publisher's table: chains of blocks, a short ring, no slices. */
import { pack } from 'msgpackr';
import type {
  EncodedEvents,
  IndexAnswer,
  PendingAnswer,
  RecoveryIndex,
} from '../../src/protocol/recovery.ts';

export interface FakeIndexOptions {
  readonly workerId: bigint;
  readonly dpRank?: number;
  /** Events kept for ranges. */
  readonly keptEvents?: number;
}

export interface FakeBlock {
  readonly parentHash: bigint | null;
  readonly blockHash: bigint;
  readonly tokensHash: bigint;
}

export class FakeIndex implements RecoveryIndex {
  readonly #options: FakeIndexOptions;
  readonly #ring: { id: number; bytes: Uint8Array }[] = [];
  /** Each event of a dump: a chain. */
  readonly #chains: Uint8Array[] = [];
  /** All on the device. */
  readonly blocks: FakeBlock[] = [];
  lastEventId = 0;
  /** Awaited by `prepare`; a test that wants slow or impossible snapshots sets it. */
  prepare: () => Promise<void> = async () => undefined;

  constructor(options: FakeIndexOptions) {
    this.#options = options;
  }

  /** Stores a new chain of `count` blocks; the event's bytes, as they would be published. */
  store(count: number): Uint8Array {
    const chain: FakeBlock[] = [];
    for (let number = this.blocks.length + 1; chain.length < count; number++) {
      const blockHash = BigInt.asUintN(64, BigInt(number) * 0x9e37_79b9_7f4a_7c15n);
      const parentHash = chain.at(-1)?.blockHash ?? null;
      chain.push({ parentHash, blockHash, tokensHash: BigInt.asUintN(64, blockHash * 3n) });
    }
    // No spread: a chain may be longer than a call has arguments.
    for (const block of chain) this.blocks.push(block);
    this.#chains.push(this.#event(this.#chains.length, chain));
    const bytes = this.#event(++this.lastEventId, chain);
    this.#ring.push({ id: this.lastEventId, bytes });
    if (this.#ring.length > (this.#options.keptEvents ?? 1024)) this.#ring.shift();
    return bytes;
  }

  answer(startEventId: number | null, endEventId: number | null): PendingAnswer {
    return {
      prepare: () => this.prepare(),
      finish: () => this.#answer(startEventId, endEventId),
    };
  }

  #answer(start: number | null, end: number | null): IndexAnswer {
    const { lastEventId } = this;
    const oldest = this.#ring[0]?.id;
    if (start !== null && end !== null && end < start) {
      return { kind: 'invalid_range', startId: start, endId: end };
    }
    if (start === null || oldest === undefined || start < oldest) {
      return { kind: 'tree_dump', events: encoded(this.#chains), lastEventId };
    }
    if (start > lastEventId) {
      const requestedEnd = end ?? lastEventId;
      return { kind: 'too_new', requestedStart: start, requestedEnd, newestAvailable: lastEventId };
    }
    const events = this.#ring.filter(({ id }) => id >= start).map(({ bytes }) => bytes);
    return { kind: 'events', events: encoded(events), lastEventId };
  }

  /** A chain of the blocks given, the first a root. */
  #event(eventId: number, blocks: readonly FakeBlock[]): Uint8Array {
    const { workerId, dpRank = 0 } = this.#options;
    return pack({
      worker_id: workerId,
      storage_tier: 'device',
      residency_domain: 'worker',
      event: {
        event_id: eventId,
        data: {
          stored: {
            parent_hash: null,
            start_position: null,
            blocks: blocks.map(({ blockHash, tokensHash }) => ({
              block_hash: blockHash,
              tokens_hash: tokensHash,
              mm_extra_info: null,
            })),
          },
        },
        dp_rank: dpRank,
      },
    }).slice();
  }
}

/** Several events to a chunk, and one that has a chunk of its own. */
function encoded(events: readonly Uint8Array[]): EncodedEvents {
  const [first, ...rest] = events;
  const chunks = first === undefined ? [] : [first, Buffer.concat(rest)];
  return { count: events.length, chunks };
}
