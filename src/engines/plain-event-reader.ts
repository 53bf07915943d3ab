/**
 * PlainEventReader: events as nearly all are, read by the kernel many in a call (the step `read` of
 * `npm run bench -- --in-process`), with the outcome that event-array.ts and event-map.ts would have.
 *
 * Plain    no adapter, salt, session, image, owner or extra key, and nothing wrong; see events.ts of the
 *          kernel.
 * Owns     room for the kernel's records; events and lists are the arena's, and live until its next reset.
 */
import { ArenaPool } from '../kernel/arena-pool.ts';
import { allocateBlock, releaseBlock, views } from '../kernel/kernel.ts';
import { TokenList } from '../kernel/token-list.ts';
import { U64List } from '../kernel/u64-list.ts';
import { RawEvent } from '../protocol/native-batch.ts';
import { textOfCode } from './known-texts.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

/** Records of one call; a batch with more takes several. */
const MAX_RECORDS = 1024;
const RECORD_WORDS = 12;

const STORED = 1;
const REMOVED = 2;

const HAS_PARENT = 1;
const IS_EAGLE = 2;
const HAS_LORA_ID = 4;
const HAS_GROUP = 8;
const IS_LOCAL = 16;
const JOINED_SHIFT = 16;

export class PlainEventReader {
  readonly #block = allocateBlock(MAX_RECORDS * RECORD_WORDS * 4);

  /** Appends up to `count` events to `out`, as far as they are plain; returns how many it took. */
  read(reader: MsgpackReader, count: number, out: RawEvent[]): number {
    let taken = 0;
    while (taken < count) {
      const wanted = Math.min(count - taken, MAX_RECORDS);
      const records = reader.readPlainEvents(wanted, this.#block.address);
      for (let index = 0; index < records; index++) out.push(this.#eventOf(index));
      taken += reader.plainEvents;
      if (reader.plainEvents < wanted) break;
    }
    return taken;
  }

  /** Gives its memory back; nothing may be read after it. */
  free(): void {
    releaseBlock(this.#block);
  }

  #eventOf(index: number): RawEvent {
    const { u32, i32 } = views;
    const at = (this.#block.address >>> 2) + index * RECORD_WORDS;
    const type = u32[at] as number;
    const flags = u32[at + 1] as number;
    const event = events.take();
    event.eventCount = 1 + (flags >>> JOINED_SHIFT);
    event.type = type === STORED ? 'stored' : type === REMOVED ? 'removed' : 'cleared';
    event.blockHashes = listAt(u32[at + 2] as number, u32[at + 3] as number);
    event.hasParent = (flags & HAS_PARENT) !== 0;
    event.parentLow = i32[at + 4] as number;
    event.parentHigh = i32[at + 5] as number;
    event.tokens = tokensAt(u32[at + 6] as number, u32[at + 7] as number);
    event.isEagle = (flags & IS_EAGLE) !== 0;
    event.blockSize = u32[at + 8] as number;
    event.medium = textOfCode(u32[at + 9] as number);
    event.hasLoraId = (flags & HAS_LORA_ID) !== 0;
    event.groupIdx = (flags & HAS_GROUP) === 0 ? null : (u32[at + 10] as number);
    event.specKind = textOfCode(u32[at + 11] as number);
    event.locality = (flags & IS_LOCAL) === 0 ? null : 'LOCAL';
    return event;
  }
}

/** What is never set of these is what no plain event has. */
const events = new ArenaPool(() => new RawEvent('ignored'));

/** No list lies at address 0: the event has none. */
function listAt(address: number, count: number): U64List | null {
  return address === 0 ? null : U64List.pooled(count, address);
}

function tokensAt(address: number, count: number): TokenList | null {
  return address === 0 ? null : TokenList.pooled(count, address);
}
