/**
 * Cuts the bytes of one router's connection into request frames.
 *
 * Frame    u16 length · path · u16 length · headers (JSON) · u32 length · payload, big-endian.
 * Bounds   the protocol allows 32 MiB. A query takes about 700 bytes, so 96 KiB are taken here: what is
 *          announced as larger is a fault before a byte of it is kept.
 * Fault    the frames before it are still given; nothing after it can be trusted.
 * Source   ai-dynamo/dynamo 1.6.1, TCP request plane.
 */

export const MAX_PATH_BYTES: number = 16 << 10;
export const MAX_HEADERS_BYTES: number = 16 << 10;
export const MAX_PAYLOAD_BYTES: number = 64 << 10;

export interface RequestFrame {
  readonly path: string;
  readonly payload: Buffer;
}

const PATH_AT = 2;
const MAX_CHUNKS = 64;

export class RequestFrames {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes without which the frame at the front cannot be told further. */
  #neededBytes = PATH_AT;

  /** True while a frame has begun and is not complete. */
  get isInFrame(): boolean {
    return this.#bytes > 0;
  }

  /** Appends complete frames to `out`, oldest first; false where what follows is no frame. */
  push(chunk: Buffer, out: RequestFrame[]): boolean {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    // Bytes that come one by one are joined now and then: each piece costs far more than its byte.
    if (this.#bytes < this.#neededBytes) {
      if (this.#chunks.length === MAX_CHUNKS) this.#chunks = [Buffer.concat(this.#chunks)];
      return true;
    }
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    let isWellFormed = true;
    for (;;) {
      const end = frameEnd(rest);
      if (end === null) isWellFormed = false;
      else this.#neededBytes = end;
      if (end === null || end > rest.length) break;
      const pathEnd = PATH_AT + rest.readUInt16BE(0);
      const payloadAt = pathEnd + 2 + rest.readUInt16BE(pathEnd) + 4;
      const path = rest.toString('utf8', PATH_AT, pathEnd);
      out.push({ path, payload: rest.subarray(payloadAt, end) });
      rest = rest.subarray(end);
      this.#neededBytes = PATH_AT;
      if (rest.length < PATH_AT) break;
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    return isWellFormed;
  }
}

/** Where the frame ends, or the part of it whose length is known; null: beyond a bound. */
function frameEnd(bytes: Buffer): number | null {
  const pathBytes = bytes.readUInt16BE(0);
  if (pathBytes > MAX_PATH_BYTES) return null;
  const headersAt = PATH_AT + pathBytes + 2;
  if (bytes.length < headersAt) return headersAt;
  const headersBytes = bytes.readUInt16BE(headersAt - 2);
  if (headersBytes > MAX_HEADERS_BYTES) return null;
  const payloadAt = headersAt + headersBytes + 4;
  if (bytes.length < payloadAt) return payloadAt;
  const payloadBytes = bytes.readUInt32BE(payloadAt - 4);
  return payloadBytes > MAX_PAYLOAD_BYTES ? null : payloadAt + payloadBytes;
}
