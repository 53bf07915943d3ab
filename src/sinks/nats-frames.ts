/**
 * NatsFrames: messages as the protocol of NATS has them, sent from where they lie.
 *
 * Frame   `PUB`, blanks, subject, blank, length of the envelope in decimal, CR LF, envelope, CR LF
 * Room    an envelope's head is of changing size, and the line has to end right in front of it: the blanks behind `PUB`
 *         take up what is left. The server skips them there, however many, and does not count them in the length that
 *         it allows a line.
 * Pieces  frames that lie side by side in a slab are one write.
 * Copies  only what has no room in a slab: messages that are rare.
 * Source  nats-server 2.15, parser.go.
 */
import type { MessageRoom, MessageSlab } from '../protocol/message-slab.ts';
import type { OutboxMessage } from './outbox.ts';

const VERB = Buffer.from('PUB');
const BLANK = 0x20;
const CR = 0x0d;
const LF = 0x0a;
const DIGIT_0 = 0x30;
/** Of the length of an envelope. */
const MAX_DIGITS = 10;

export class NatsFrames {
  /** What it writes around an envelope, at most. */
  readonly room: MessageRoom;
  /** Between two blanks. */
  readonly #subject: Buffer;
  readonly #write: (frames: Uint8Array) => void;
  /** The piece that is being gathered; null: there is none. */
  #slab: MessageSlab | null = null;
  #start = 0;
  #end = 0;

  /** `write` sends the bytes as they lie, or loses them. */
  constructor(subject: string, write: (frames: Uint8Array) => void) {
    this.#subject = Buffer.from(` ${subject} `);
    this.#write = write;
    this.room = { before: VERB.length + this.#subject.length + MAX_DIGITS + 2, behind: 2 };
  }

  /** Sends the message, at the next `flush()` at the latest. One that was sent before gets the same bytes again. */
  add({ slab, slabStart = 0, slabEnd = 0, envelope }: OutboxMessage): void {
    if (!slab || !this.#hasRoom(envelope, slabStart, slabEnd)) {
      this.flush();
      this.#write(this.#copyOf(envelope));
      return;
    }
    if (slab !== this.#slab || slabStart !== this.#end) {
      this.flush();
      this.#slab = slab;
      this.#start = slabStart;
    }
    this.#end = slabEnd;
    this.#frame(slab.buffer, slabStart, envelope.byteOffset, slabEnd);
  }

  flush(): void {
    const slab = this.#slab;
    if (slab === null) return;
    this.#slab = null;
    this.#write(slab.buffer.subarray(this.#start, this.#end));
  }

  #hasRoom({ byteOffset, length }: Buffer, slabStart: number, slabEnd: number): boolean {
    const { before, behind } = this.room;
    return byteOffset - slabStart >= before && slabEnd - byteOffset - length === behind;
  }

  #copyOf(envelope: Buffer): Buffer {
    const { before, behind } = this.room;
    const frame = Buffer.allocUnsafe(before + envelope.length + behind);
    envelope.copy(frame, before);
    this.#frame(frame, 0, before, frame.length);
    return frame;
  }

  /** Fills in what stands around the envelope that begins at `envelopeAt`; all places are of `buffer`. */
  #frame(buffer: Buffer, start: number, envelopeAt: number, end: number): void {
    let at = envelopeAt - 2;
    buffer[at] = CR;
    buffer[at + 1] = LF;
    let rest = end - 2 - envelopeAt;
    do {
      buffer[--at] = DIGIT_0 + (rest % 10);
      rest = Math.floor(rest / 10);
    } while (rest > 0);
    at -= this.#subject.length;
    buffer.set(this.#subject, at);
    buffer.set(VERB, start);
    buffer.fill(BLANK, start + VERB.length, at);
    buffer[end - 2] = CR;
    buffer[end - 1] = LF;
  }
}
