/**
 * ZmqFrames: messages as the ZMQ plane has them, sent from where they lie.
 *
 * Frames   [0] topic   [1] publisher id, 8 bytes BE   [2] sequence, 8 bytes BE
 *          [3] 0x01, envelope length as u32 BE, envelope
 * Wire     short frames but for the last, which is long however few bytes it has: what stands in front of an envelope is
 *          always of the same size.
 * Source   ai-dynamo/dynamo 1.6.1, ZMQ event plane; ZeroMQ RFC 37 (frames).
 */
import { frame, LONG, MORE } from '../connections/zmtp/handshake.ts';
import type { MessageRoom } from '../protocol/message-slab.ts';
import type { OutboxMessage } from './outbox.ts';

const FRAME_VERSION = 1;
const U64_BYTES = 8;
const LONG_HEAD_BYTES = 9;
const BODY_HEAD_BYTES = 5;

export class ZmqFrames {
  /** What it writes before an envelope. */
  readonly room: MessageRoom;
  /** With the topic and this publisher; the rest is of each message. */
  readonly #head: Buffer;
  readonly #sequenceAt: number;
  readonly #lengthAt: number;

  constructor(topic: string, publisherId: number) {
    const id = Buffer.alloc(U64_BYTES);
    id.writeBigUInt64BE(BigInt(publisherId));
    const last = Buffer.alloc(LONG_HEAD_BYTES + BODY_HEAD_BYTES);
    last[0] = LONG;
    last[LONG_HEAD_BYTES] = FRAME_VERSION;
    const beforeSequence = Buffer.concat([
      frame(MORE, Buffer.from(topic)),
      frame(MORE, id),
      Buffer.of(MORE, U64_BYTES),
    ]);
    this.#sequenceAt = beforeSequence.length;
    this.#lengthAt = this.#sequenceAt + U64_BYTES + 1;
    this.#head = Buffer.concat([beforeSequence, Buffer.alloc(U64_BYTES), last]);
    this.room = { before: this.#head.length, behind: 0 };
  }

  /** The message as it goes over the wire. One without room has it in front. */
  pieces({ sequence, envelope, slab, slabStart = 0 }: OutboxMessage): Buffer[] {
    const { length } = this.#head;
    const headAt = envelope.byteOffset - length;
    if (!slab || headAt < slabStart) {
      const head = Buffer.allocUnsafe(length);
      this.#put(head, 0, sequence, envelope.length);
      return [head, envelope];
    }
    const { buffer } = slab;
    this.#put(buffer, headAt, sequence, envelope.length);
    return [buffer.subarray(headAt, envelope.byteOffset + envelope.length)];
  }

  #put(buffer: Buffer, at: number, sequence: number, envelopeBytes: number): void {
    buffer.set(this.#head, at);
    putU64(buffer, at + this.#sequenceAt, sequence);
    putU64(buffer, at + this.#lengthAt, BODY_HEAD_BYTES + envelopeBytes);
    buffer.writeUInt32BE(envelopeBytes, at + this.#head.length - 4);
  }
}

function putU64(buffer: Buffer, at: number, value: number): void {
  buffer.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  buffer.writeUInt32BE(value % 2 ** 32, at + 4);
}
