/** Fields that an event holds in array form and in map form alike. */
import type { RawEvent, RawEventType } from '../protocol/native-batch.ts';
import { UNKNOWN_TAG } from './decode-fault.ts';
import type { MsgpackReader } from './msgpack-reader.ts';

export function typeOfTag(tag: string): RawEventType {
  switch (tag) {
    case 'BlockStored':
      return 'stored';
    case 'BlockRemoved':
      return 'removed';
    case 'AllBlocksCleared':
      return 'cleared';
    case 'Ignored':
      return 'ignored';
    default:
      throw UNKNOWN_TAG;
  }
}

export function readParent(reader: MsgpackReader, event: RawEvent): void {
  event.hasParent = !reader.skipNil();
  if (!event.hasParent) return;
  reader.readHash();
  event.parentLow = reader.low;
  event.parentHigh = reader.high;
}

export function readTokenIds(reader: MsgpackReader, event: RawEvent): void {
  const count = reader.openArray();
  event.isEagle = count > 0 && reader.isArray();
  event.tokens = event.isEagle ? reader.readBigrams(count) : reader.readTokens(count);
  reader.closeContainer();
}

/** An empty medium is an absent one. */
export function readMedium(reader: MsgpackReader): string | null {
  return reader.readTextOrNil() || null;
}
