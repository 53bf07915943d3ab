/** The answer to a router's query, as it reads it off the response stream. */
import { unpack } from 'msgpackr';
import { parseLosslessJson } from '../../src/protocol/lossless-json.ts';
import {
  type PublishedEvent,
  publishedEventOf,
  type WireEvent,
} from '../support/published-events.ts';

export type QueryAnswer =
  | {
      readonly kind: 'events' | 'tree_dump';
      readonly events: readonly PublishedEvent[];
      readonly lastEventId: number;
    }
  | { readonly kind: 'tree_dump_failed' | 'too_new' | 'invalid_range' | 'error' };

interface Listed {
  readonly events: readonly WireEvent[];
  readonly last_event_id: number | bigint;
}

interface WireAnswer {
  readonly data: {
    readonly Events?: Listed;
    readonly TreeDump?: Listed;
    readonly TreeDumpFailed?: object;
    readonly TooNew?: object;
    readonly InvalidRange?: object;
    readonly Error?: string;
  };
}

export function readAnswer(body: Buffer, codec: 'msgpack' | 'json'): QueryAnswer {
  const text = codec === 'json' ? body.toString('utf8') : null;
  const { data } = (text === null ? unpack(body) : parseLosslessJson(text)) as WireAnswer;
  const listed = data.Events ?? data.TreeDump;
  if (listed !== undefined) {
    return {
      kind: data.TreeDump === undefined ? 'events' : 'tree_dump',
      events: listed.events.map(publishedEventOf),
      lastEventId: Number(listed.last_event_id),
    };
  }
  if (data.TreeDumpFailed !== undefined) return { kind: 'tree_dump_failed' };
  if (data.TooNew !== undefined) return { kind: 'too_new' };
  return { kind: data.InvalidRange === undefined ? 'error' : 'invalid_range' };
}
