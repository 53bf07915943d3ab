/**
 * Answers to a router's query, and their bytes in either codec.
 *
 * Answer   {"data": {<variant>: …}, "complete_final": false}; the variant's name and fields are stock's,
 *          in stock's order, integers in their smallest form.
 * Events   stand in it as they are in MessagePack; for JSON they come already turned into text.
 * Source   ai-dynamo/dynamo 1.6.1, WorkerKvQueryResponse as rmp-serde and serde_json write it.
 */
import type { EncodedEvents, IndexAnswer } from '../../protocol/recovery.ts';
import type { Codec, Query } from './query.ts';

/** What an index says, and what is said without one; ids as the router wrote them. */
export type Answer =
  | Extract<IndexAnswer, { kind: 'events' | 'tree_dump' | 'tree_dump_failed' }>
  | {
      readonly kind: 'too_new';
      readonly requestedStart: bigint;
      readonly requestedEnd: bigint;
      readonly newestAvailable: number;
    }
  | { readonly kind: 'invalid_range'; readonly startId: bigint; readonly endId: bigint }
  | { readonly kind: 'error'; readonly message: string };

/** The index counts in numbers; the ids a router asked for go back to it with all their digits. */
export function answerTo(query: Query, answer: IndexAnswer): Answer {
  const { startEventId, endEventId } = query;
  if (answer.kind === 'too_new') {
    return {
      kind: 'too_new',
      requestedStart: startEventId ?? BigInt(answer.requestedStart),
      requestedEnd: endEventId ?? BigInt(answer.requestedEnd),
      newestAvailable: answer.newestAvailable,
    };
  }
  if (answer.kind === 'invalid_range') {
    return {
      kind: 'invalid_range',
      startId: startEventId ?? BigInt(answer.startId),
      endId: endEventId ?? BigInt(answer.endId),
    };
  }
  return answer;
}

/** An answer's body in pieces. `eventChunks` are the events in `codec`, commas included. */
export function encodeAnswer(
  answer: Answer,
  codec: Codec,
  eventChunks: readonly Uint8Array[],
): Uint8Array[] {
  return encode({ data: toFields(answer), complete_final: false }, codec, eventChunks);
}

/** The body that ends a response stream. */
export function encodeEnd(codec: Codec): Buffer {
  return Buffer.concat(encode({ complete_final: true }, codec, []));
}

type Value = string | boolean | bigint | EncodedEvents | Fields;
interface Fields {
  readonly [key: string]: Value;
}

function toFields(answer: Answer): Fields {
  if (answer.kind === 'error') return { Error: answer.message };
  if (answer.kind === 'too_new') {
    const { requestedStart, requestedEnd, newestAvailable } = answer;
    return {
      TooNew: {
        requested_start: requestedStart,
        requested_end: requestedEnd,
        newest_available: BigInt(newestAvailable),
      },
    };
  }
  if (answer.kind === 'invalid_range') {
    return { InvalidRange: { start_id: answer.startId, end_id: answer.endId } };
  }
  const last_event_id = BigInt(answer.lastEventId);
  if (answer.kind === 'tree_dump_failed') {
    return { TreeDumpFailed: { last_event_id, message: answer.message } };
  }
  const { events } = answer;
  if (answer.kind === 'events') return { Events: { events, last_event_id } };
  return { TreeDump: { events, last_event_id, reset_scope: 'all' } };
}

function encode(fields: Fields, codec: Codec, eventChunks: readonly Uint8Array[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  if (codec === 'msgpack') putMsgpack(fields, eventChunks, pieces);
  else putJson(fields, eventChunks, pieces);
  return pieces;
}

function putJson(value: Value, eventChunks: readonly Uint8Array[], pieces: Uint8Array[]): void {
  if (isEvents(value)) {
    pieces.push(Buffer.from('['));
    for (const chunk of eventChunks) pieces.push(chunk);
    pieces.push(Buffer.from(']'));
  } else if (typeof value === 'object') {
    for (const [index, [key, field]] of Object.entries(value).entries()) {
      pieces.push(Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(key)}:`));
      putJson(field, eventChunks, pieces);
    }
    pieces.push(Buffer.from('}'));
  } else {
    pieces.push(Buffer.from(typeof value === 'bigint' ? value.toString() : JSON.stringify(value)));
  }
}

function putMsgpack(value: Value, eventChunks: readonly Uint8Array[], pieces: Uint8Array[]): void {
  if (isEvents(value)) {
    pieces.push(arrayHeader(value.count));
    for (const chunk of eventChunks) pieces.push(chunk);
  } else if (typeof value === 'object') {
    const entries = Object.entries(value);
    pieces.push(Buffer.from([0x80 | entries.length]));
    for (const [key, field] of entries) {
      pieces.push(msgpackText(key));
      putMsgpack(field, eventChunks, pieces);
    }
  } else if (typeof value === 'string') pieces.push(msgpackText(value));
  else if (typeof value === 'bigint') pieces.push(msgpackUnsigned(value));
  else pieces.push(Buffer.from([value ? 0xc3 : 0xc2]));
}

function isEvents(value: Value): value is EncodedEvents {
  return typeof value === 'object' && 'chunks' in value;
}

function arrayHeader(count: number): Buffer {
  if (count < 16) return Buffer.from([0x90 | count]);
  return count < 1 << 16 ? marked(0xdc, count, 2) : marked(0xdd, count, 4);
}

function msgpackText(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  const { length } = bytes;
  let head = marked(0xda, length, 2);
  if (length < 32) head = Buffer.from([0xa0 | length]);
  else if (length < 1 << 8) head = marked(0xd9, length, 1);
  return Buffer.concat([head, bytes]);
}

function msgpackUnsigned(value: bigint): Buffer {
  if (value < 1n << 7n) return Buffer.from([Number(value)]);
  if (value < 1n << 8n) return marked(0xcc, Number(value), 1);
  if (value < 1n << 16n) return marked(0xcd, Number(value), 2);
  if (value < 1n << 32n) return marked(0xce, Number(value), 4);
  const bytes = Buffer.alloc(9, 0xcf);
  bytes.writeBigUInt64BE(value, 1);
  return bytes;
}

function marked(marker: number, value: number, byteCount: number): Buffer {
  const bytes = Buffer.alloc(1 + byteCount, marker);
  bytes.writeUIntBE(value, 1, byteCount);
  return bytes;
}
