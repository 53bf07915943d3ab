/**
 * FrameReader: the bytes of one ZMTP 3 connection, as they come, to commands and whole messages.
 *
 * In       room() is where the next bytes go, add() says how many have come.
 * Out      next(), one command or message a call. A message lies in one piece in the slab that it was read into, and stays
 *          whole until the next call of room(); for longer where its slab is held.
 * Bounds   a frame by maxMessageBytes, all of one message by EXTRA_BYTES more, a command by MAX_COMMAND_BYTES.
 *          Memory is taken as bytes arrive, not as they are announced.
 * Frame    [0] flags: 1 more, 2 long, 4 command   [1] u8 or, where long, [1..9) u64 BE body length   body
 * Throws   never. Behind a fault nothing is read any more.
 * Source   ZeroMQ RFC 37, ZMTP 3.1.
 */
import { COMMAND, LONG, MORE } from './handshake.ts';
import { ReadSlab, ReadSlabs, SLAB_BYTES } from './read-slab.ts';

export interface WireMessage {
  readonly slab: ReadSlab;
  /** Those behind the third are only counted; a place says nothing of a frame that there is not. */
  readonly frameCount: number;
  readonly firstAt: number;
  readonly firstLength: number;
  readonly secondAt: number;
  readonly secondLength: number;
  readonly thirdAt: number;
  readonly thirdLength: number;
  /** With the heads of its frames. */
  readonly wireBytes: number;
}

export type Progress = 'message' | 'command' | 'partial' | 'breach' | 'oversize';

/** For greeting, handshake and the first messages of a link. */
const FIRST_SLAB_BYTES = 1 << 13;
/** Less is not worth a read. */
const MIN_ROOM_BYTES = 1 << 12;
/** Announced bytes that are believed at once. */
const TRUSTED_BYTES = 1 << 20;
/** For the frames of a message beside its largest. */
const EXTRA_BYTES = 1 << 16;
const MAX_COMMAND_BYTES = 1 << 13;

const LAST_FLAGS = MORE | LONG | COMMAND;

export class FrameReader {
  readonly #maxMessageBytes: number;
  readonly #slabs: ReadSlabs;
  #slab = new ReadSlab(FIRST_SLAB_BYTES);
  #bytes: Buffer = this.#slab.bytes;
  /** Where the message at hand begins, where the next frame does, and where the bytes that came end. */
  #start = 0;
  #at = 0;
  #end = 0;
  /** Bytes from #start on that the frame at hand takes to be whole. */
  #needed = 0;
  #frameCount = 0;
  /** Of the first three frames, from #start on. */
  #firstAt = 0;
  #firstLength = 0;
  #secondAt = 0;
  #secondLength = 0;
  #thirdAt = 0;
  #thirdLength = 0;
  /** What next() found, where it says so; a command is to be looked at before the next call. */
  message: WireMessage | null = null;
  command: Buffer = this.#bytes.subarray(0, 0);

  /** `slabBytes`: of the memory that is read into, behind the first. */
  constructor(maxMessageBytes: number, slabBytes: number = SLAB_BYTES) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#slabs = new ReadSlabs(slabBytes);
  }

  /** Where the next bytes go, until it is called again: never empty, and no more than can be looked through in a turn. */
  room(): Buffer {
    const missing = this.#needed - (this.#end - this.#start);
    const free = this.#bytes.length - this.#end;
    if (free < MIN_ROOM_BYTES && (missing <= 0 || missing > free)) this.#turnOver();
    return this.#bytes.subarray(this.#end, this.#end + SLAB_BYTES);
  }

  /** Goes on in another slab, with what has come of the message at hand. */
  #turnOver(): void {
    const kept = this.#end - this.#start;
    const believed = Math.min(this.#needed, Math.max(TRUSTED_BYTES, 2 * kept));
    const slab = this.#slabs.take(Math.max(believed, kept) + MIN_ROOM_BYTES, this.#slab);
    this.#bytes.copy(slab.bytes, 0, this.#start, this.#end);
    this.#slab = slab;
    this.#bytes = slab.bytes;
    this.#at -= this.#start;
    this.#start = 0;
    this.#end = kept;
  }

  add(byteCount: number): void {
    this.#end += byteCount;
  }

  /** What came and has not been read: no frames yet where a greeting stands in front. */
  get unread(): Buffer {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  /** Of a message or command a part has come. */
  get isPartial(): boolean {
    return this.#end > this.#start;
  }

  skip(byteCount: number): void {
    this.#at += byteCount;
    this.#start = this.#at;
  }

  next(): Progress {
    const bytes = this.#bytes;
    const end = this.#end;
    const maxBytes = this.#maxMessageBytes;
    for (;;) {
      const at = this.#at;
      const flags = bytes[at] ?? 0;
      let bodyAt = at + 2;
      if (end < bodyAt) return this.#await(bodyAt);
      if (flags > LAST_FLAGS) return 'breach';
      let length = bytes[at + 1] ?? 0;
      if ((flags & LONG) !== 0) {
        bodyAt = at + 9;
        if (end < bodyAt) return this.#await(bodyAt);
        if (bytes.readUInt32BE(at + 1) !== 0) return 'oversize';
        length = bytes.readUInt32BE(at + 5);
      }
      const frameEnd = bodyAt + length;
      const isCommand = (flags & COMMAND) !== 0;
      if (isCommand && ((flags & MORE) !== 0 || length > MAX_COMMAND_BYTES)) return 'breach';
      if (length > maxBytes && !isCommand) return 'oversize';
      if (frameEnd - this.#start > maxBytes + EXTRA_BYTES) return 'oversize';
      if (end < frameEnd) return this.#await(frameEnd);
      this.#at = frameEnd;
      if (isCommand) {
        this.command = bytes.subarray(bodyAt, frameEnd);
        // One may stand between the frames of a message.
        if (this.#frameCount === 0) this.#start = frameEnd;
        return 'command';
      }
      this.#noteFrame(bodyAt - this.#start, length);
      if ((flags & MORE) === 0) {
        this.message = this.#cut(frameEnd);
        return 'message';
      }
    }
  }

  #await(frameEnd: number): Progress {
    this.#needed = frameEnd - this.#start;
    return 'partial';
  }

  #noteFrame(at: number, length: number): void {
    const index = this.#frameCount++;
    if (index === 0) {
      this.#firstAt = at;
      this.#firstLength = length;
    } else if (index === 1) {
      this.#secondAt = at;
      this.#secondLength = length;
    } else if (index === 2) {
      this.#thirdAt = at;
      this.#thirdLength = length;
    }
  }

  #cut(end: number): WireMessage {
    const start = this.#start;
    const message = {
      slab: this.#slab,
      frameCount: this.#frameCount,
      firstAt: start + this.#firstAt,
      firstLength: this.#firstLength,
      secondAt: start + this.#secondAt,
      secondLength: this.#secondLength,
      thirdAt: start + this.#thirdAt,
      thirdLength: this.#thirdLength,
      wireBytes: end - start,
    };
    this.#start = end;
    this.#frameCount = 0;
    return message;
  }
}
