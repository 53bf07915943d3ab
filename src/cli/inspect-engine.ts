/** Engine messages for `kvrelay inspect`: three frames to one line an event, and what is wrong with others. */
import { BatchReader } from '../engines/batch-reader.ts';
import { arena } from '../kernel/arena.ts';
import { u64Of } from '../kernel/u64-list.ts';
import { readFrames } from '../listener/frames.ts';
import type { RawEvent } from '../protocol/native-batch.ts';
import type { Line } from './inspect-line.ts';

/** EngineDecoder: reads as `safe` does, which shows the most. */
export class EngineDecoder {
  readonly #reader = new BatchReader({ compat: 'safe', engine: 'vllm' });

  /** One line an event at least: an empty or a malformed message is a line of its own. */
  lines(frames: readonly Uint8Array[]): Line[] {
    const message = readFrames(frames, 'safe');
    if (typeof message === 'string') return [{ source: 'engine', malformed: message }];
    const head = { source: 'engine', seq: String(message.sequence), ...topicOf(frames) };
    arena.reset();
    const batch = this.#reader.read(message.payload, 0);
    if (typeof batch === 'string') {
      return [{ ...head, malformed: batch, bytes: message.payload.length }];
    }
    const inBatch = { ...head, rank: batch.dpRank };
    const events = batch.events.flatMap(eventsOf).map((event) => ({ ...inBatch, ...event }));
    const dropped = Object.entries(batch.dropped?.byReason ?? {})
      .filter(([, count]) => count > 0)
      .map(([reason, count]) => ({ ...inBatch, type: 'dropped', reason, events: count }));
    if (events.length + dropped.length === 0) return [{ ...inBatch, type: 'empty' }];
    return [...events, ...dropped];
  }
}

function topicOf([topic]: readonly Uint8Array[]): { topic?: string } {
  return topic === undefined || topic.length === 0
    ? {}
    : { topic: Buffer.from(topic).toString('utf8') };
}

/** Removes that were read as one are shown one by one, as the engine sent them. */
function eventsOf(event: RawEvent): Line[] {
  const line = eventOf(event);
  if (event.eventCount === 1 || event.blockHashes === null) return [line];
  const hashes = event.blockHashes.toBigInts().map(String);
  return hashes.map((hash) => ({ ...line, hashes: [hash], blocks: 1 }));
}

/** What is absent is left out; of salts it is said that there is one, of tokens how many. */
function eventOf(event: RawEvent): Line {
  const { type, blockHashes, tokens, extraKeys, mmInfos } = event;
  const images = mmInfos?.reduce((sum, info) => sum + (info?.mmHashes.length ?? 0), 0);
  return {
    type,
    ...(blockHashes !== null && { hashes: blockHashes.toBigInts().map(String) }),
    ...(type === 'stored' && {
      parent: event.hasParent ? String(u64Of(event.parentLow, event.parentHigh)) : null,
    }),
    ...(event.medium !== null && { medium: event.medium }),
    ...(blockHashes !== null && { blocks: blockHashes.length }),
    ...(tokens !== null && { tokens: tokens.length, block_size: event.blockSize }),
    ...(event.isEagle && { token_pairs: true }),
    ...(event.groupIdx !== null && { group: event.groupIdx }),
    ...(event.specKind !== null && { kind: event.specKind }),
    ...(event.locality !== null && { locality: event.locality }),
    ...(event.ownership !== null && { ownership: event.ownership }),
    ...(event.loraName !== null && { lora: event.loraName }),
    ...(event.cacheSalt !== null && { salted: true }),
    ...(extraKeys !== null && {
      extra_keys: extraKeys.reduce((sum, keys) => sum + keys.length, 0),
    }),
    ...(images !== undefined && { images }),
    ...(event.sessionId !== null && { session: event.sessionId }),
  };
}
