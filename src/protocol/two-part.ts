/**
 * Two-part message: what request and response streams of a router are made of.
 *
 * Layout   u64 header length · u64 body length · u64 checksum (0: none) · header · body, big-endian.
 * Source   ai-dynamo/dynamo 1.6.1; its release builds send no checksum and read none.
 */

const HEAD_BYTES = 24;

/** What stands in front of a body of `bodyBytes` that is sent by itself. */
export function twoPartHead(header: Uint8Array, bodyBytes: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES + header.length);
  head.writeBigUInt64BE(BigInt(header.length), 0);
  head.writeBigUInt64BE(BigInt(bodyBytes), 8);
  head.set(header, HEAD_BYTES);
  return head;
}

export function twoPart(header: Uint8Array, body: Uint8Array): Buffer {
  return Buffer.concat([twoPartHead(header, body.length), body]);
}

export interface TwoPart {
  readonly header: Buffer;
  readonly body: Buffer;
}

/** The parts of a message that is exactly `message`; null where the lengths say otherwise. */
export function splitTwoPart(message: Buffer): TwoPart | null {
  if (message.length < HEAD_BYTES) return null;
  const headerBytes = message.readBigUInt64BE(0);
  const bodyBytes = message.readBigUInt64BE(8);
  if (BigInt(HEAD_BYTES) + headerBytes + bodyBytes !== BigInt(message.length)) return null;
  const bodyAt = HEAD_BYTES + Number(headerBytes);
  return { header: message.subarray(HEAD_BYTES, bodyAt), body: message.subarray(bodyAt) };
}
