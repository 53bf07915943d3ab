/** A plain index that answers by the publisher's table: a list of blocks, a short ring, no cache. */
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
  readonly blocksPerDumpEvent?: number;
}

export interface FakeBlock {
  readonly blockHash: bigint;
  readonly tokensHash: bigint;
}

export class FakeIndex implements RecoveryIndex {
  readonly #options: FakeIndexOptions;
  readonly #ring: { id: number; bytes: Uint8Array }[] = [];
  #dump: Uint8Array[] | null = null;
  /** Device blocks, each a root of its own. */
  readonly blocks: FakeBlock[] = [];
  lastEventId = 0;
  /** Awaited by `prepare`; a test that wants slow or impossible snapshots sets it. */
  prepare: () => Promise<void> = async () => undefined;

  constructor(options: FakeIndexOptions) {
    this.#options = options;
  }

  /** Stores `count` further root blocks as one event; its bytes. */
  store(count: number): Uint8Array {
    const first = this.blocks.length;
    for (let index = first; index < first + count; index++) {
      const blockHash = BigInt(index + 1) * 0x9e37_79b9_7f4a_7c15n;
      this.blocks.push({
        blockHash: BigInt.asUintN(64, blockHash),
        tokensHash: BigInt.asUintN(64, blockHash * 3n),
      });
    }
    const bytes = this.#event(++this.lastEventId, this.blocks.slice(first));
    this.#ring.push({ id: this.lastEventId, bytes });
    if (this.#ring.length > (this.#options.keptEvents ?? 1024)) this.#ring.shift();
    this.#dump = null;
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
      return { kind: 'tree_dump', events: this.#dumpEvents(), lastEventId };
    }
    if (start > lastEventId) {
      const requestedEnd = end ?? lastEventId;
      return { kind: 'too_new', requestedStart: start, requestedEnd, newestAvailable: lastEventId };
    }
    const events = this.#ring.filter(({ id }) => id >= start).map(({ bytes }) => bytes);
    return { kind: 'events', events: { count: events.length, chunks: events }, lastEventId };
  }

  #dumpEvents(): EncodedEvents {
    const perEvent = this.#options.blocksPerDumpEvent ?? 500;
    if (this.#dump === null) {
      this.#dump = [];
      for (let first = 0; first < this.blocks.length; first += perEvent) {
        this.#dump.push(this.#event(this.#dump.length, this.blocks.slice(first, first + perEvent)));
      }
    }
    return { count: this.#dump.length, chunks: this.#dump };
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
