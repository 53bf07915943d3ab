/**
 * OversizeSplitter: parts of events that no message of the plane could carry (`safe`).
 *
 * In/out   an event that fits passes as it is; of one that does not, stores become a chain of stores (the
 *          parent of a part is the last block of the part before, a session id of up to 1 KiB is
 *          repeated, image data stays with its block) and removes several removes.
 * Limit    asked for each event: it can change when the plane reconnects.
 * Owns     a buffer to measure in; no ids: they are given afterwards, contiguously. Never throws.
 */
import { EncodeBuffer, MAX_BLOCK_BYTES } from '../kernel/encode-buffer.ts';
import { MAX_ENVELOPE_HEAD_BYTES } from '../protocol/envelope.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import { RouterEventEncoder } from '../protocol/router-event.ts';
import type { Stage } from '../stage.ts';

/** Largest id there will be, so that what is measured is never smaller than what is sent. */
const LARGEST_EVENT_ID = Number.MAX_SAFE_INTEGER;

/** The same of worker ids. */
const LARGEST_WORKER_ID = 2n ** 64n - 1n;

/** Most that an event has around its blocks and its session id. */
const MAX_EVENT_HEAD_BYTES = 256;

/** A longer session id is left out of parts: repeated in each, it could outgrow all memory. */
const MAX_REPEATED_SESSION_BYTES = 1024;

export class OversizeSplitter implements Stage<PlacementEvent, PlacementEvent> {
  readonly #maxMessageBytes: () => number;
  readonly #encoder = new RouterEventEncoder(LARGEST_WORKER_ID);
  readonly #scratch = new EncodeBuffer();

  /** `maxMessageBytes` of the whole message, envelope included. */
  constructor(maxMessageBytes: () => number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  push(event: PlacementEvent, out: PlacementEvent[]): void {
    // What cannot be split needs no limit, which is asked all the way down to the connection.
    if (event.blockCount < 2) {
      out.push(event);
      return;
    }
    const roomBytes = this.#maxMessageBytes() - MAX_ENVELOPE_HEAD_BYTES;
    if (this.#fits(event, roomBytes)) {
      out.push(event);
      return;
    }
    const { blockCount } = event;
    if (sessionBytes(event) > MAX_REPEATED_SESSION_BYTES) event.sessionId = null;
    let start = 0;
    while (start < blockCount) {
      const end = this.#endOfPart(event, start, roomBytes);
      out.push(part(event, start, end));
      start = end;
    }
  }

  /** Nothing is held back: only the memory to measure with goes. */
  flush(): void {
    this.#scratch.free();
  }

  #fits(event: PlacementEvent, roomBytes: number): boolean {
    // Most events are far from the limit, so the bound decides without measuring.
    if (event.mmInfos === null && this.#atMost(event, event.blockCount) <= roomBytes) return true;
    return this.#measured(event) <= roomBytes;
  }

  /** As many blocks from `start` as surely fit, one at least. */
  #endOfPart(event: PlacementEvent, start: number, roomBytes: number): number {
    let end = Math.min(
      event.blockCount,
      start + Math.max(1, Math.floor((roomBytes - this.#atMost(event, 0)) / MAX_BLOCK_BYTES)),
    );
    if (event.mmInfos === null) return end;
    while (end - start > 1 && this.#measured(part(event, start, end)) > roomBytes) {
      end = start + Math.ceil((end - start) / 2);
    }
    return end;
  }

  #atMost(event: PlacementEvent, blockCount: number): number {
    return MAX_EVENT_HEAD_BYTES + sessionBytes(event) + blockCount * MAX_BLOCK_BYTES;
  }

  #measured(event: PlacementEvent): number {
    this.#scratch.reset();
    this.#encoder.encode(this.#scratch, event, LARGEST_EVENT_ID);
    return this.#scratch.length;
  }
}

function sessionBytes({ sessionId }: PlacementEvent): number {
  return sessionId === null ? 0 : Buffer.byteLength(sessionId);
}

function part(event: PlacementEvent, start: number, end: number): PlacementEvent {
  const { blockHashes, tokensHashes, mmInfos } = event;
  const result = event.withLists(
    blockHashes.slice(start, end - start),
    tokensHashes?.slice(start, end - start) ?? null,
  );
  if (start > 0) {
    result.hasParent = true;
    result.parentLow = blockHashes.lowAt(start - 1);
    result.parentHigh = blockHashes.highAt(start - 1);
  }
  result.mmInfos = mmInfos?.slice(start, end) ?? null;
  return result;
}
