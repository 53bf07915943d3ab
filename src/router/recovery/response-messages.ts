/**
 * The messages of a response stream, in the order they go to the router.
 *
 * Layout   handshake · prologue · answer · end · sentinel, each a two-part message.
 * Source   ai-dynamo/dynamo 1.6.1, TCP response stream.
 */
import { twoPart, twoPartHead } from '../../protocol/two-part.ts';
import { encodeEnd } from './answer.ts';
import type { Codec } from './query.ts';

const NOTHING = new Uint8Array(0);

function headerOnly(json: unknown): Buffer {
  return twoPart(Buffer.from(JSON.stringify(json)), NOTHING);
}

export function handshake(subject: string): Buffer {
  return headerOnly({ subject, stream_type: 'response' });
}

export const PROLOGUE: Buffer = headerOnly({ error: null });

/** The answer itself, of `bodyBytes`, follows. */
export function answerHead(bodyBytes: number): Buffer {
  return twoPartHead(NOTHING, bodyBytes);
}

/** End and sentinel. */
export function closing(codec: Codec): Buffer {
  return Buffer.concat([twoPart(NOTHING, encodeEnd(codec)), headerOnly('sentinel')]);
}

/** What a router may say before it closes the stream; each is a whole message. */
export const FAREWELLS: readonly Buffer[] = [headerOnly('kill'), headerOnly('stop')];
