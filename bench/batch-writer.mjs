/**
 * Engine batches as MessagePack, written by hand: streams of many megabytes have to be made quickly.
 *
 * Events are arrays with the tail of a hybrid engine: what vLLM 0.22 sends. A hash is `{high, low}`.
 */
export class BatchWriter {
  #buffer = Buffer.alloc(1 << 16);
  #length = 0;
  #sequence;

  /** `firstSequence` is the number of the first batch. */
  constructor(firstSequence = 0) {
    this.#sequence = firstSequence;
  }

  /** Opens a batch of `count` events; these follow, then `finish()`. */
  start(count) {
    this.#array(3);
    this.#reserve(9);
    this.#length = this.#buffer.writeDoubleBE(131_072, this.#buffer.writeUInt8(0xcb, this.#length));
    this.#array(count);
  }

  stored(hashes, parent, tokens, blockSize) {
    this.#array(12);
    this.#text('BlockStored');
    this.#array(hashes.length);
    for (const hash of hashes) this.#hash(hash);
    if (parent === null) this.#nil();
    else this.#hash(parent);
    this.#array(tokens.length);
    for (const token of tokens) this.#unsigned(token);
    this.#unsigned(blockSize);
    this.#nil();
    this.#text('GPU');
    this.#nil();
    this.#nil();
    this.#unsigned(0);
    this.#text('full_attention');
    this.#nil();
  }

  removed(...hashes) {
    this.#array(4);
    this.#text('BlockRemoved');
    this.#array(hashes.length);
    for (const hash of hashes) this.#hash(hash);
    this.#text('GPU');
    this.#unsigned(0);
  }

  /** The batch of a rank as three frames: no topic, the next sequence number, the payload. */
  finish(dpRank = 0) {
    this.#unsigned(dpRank);
    const sequence = Buffer.alloc(8);
    sequence.writeBigUInt64BE(BigInt(this.#sequence++));
    const payload = Buffer.from(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
    return [Buffer.alloc(0), sequence, payload];
  }

  #array(count) {
    this.#reserve(5);
    if (count < 16) this.#buffer[this.#length++] = 0x90 | count;
    else if (count < 65_536) {
      this.#buffer[this.#length] = 0xdc;
      this.#length = this.#buffer.writeUInt16BE(count, this.#length + 1);
    } else {
      this.#buffer[this.#length] = 0xdd;
      this.#length = this.#buffer.writeUInt32BE(count, this.#length + 1);
    }
  }

  #text(value) {
    this.#reserve(1 + value.length);
    this.#buffer[this.#length++] = 0xa0 | value.length;
    this.#length += this.#buffer.write(value, this.#length, 'latin1');
  }

  #unsigned(value) {
    this.#reserve(5);
    const buffer = this.#buffer;
    let at = this.#length;
    if (value < 128) buffer[at++] = value;
    else if (value < 65_536) {
      buffer[at++] = 0xcd;
      buffer[at++] = value >>> 8;
      buffer[at++] = value & 255;
    } else {
      buffer[at++] = 0xce;
      buffer[at++] = value >>> 24;
      buffer[at++] = (value >>> 16) & 255;
      buffer[at++] = (value >>> 8) & 255;
      buffer[at++] = value & 255;
    }
    this.#length = at;
  }

  #hash({ high, low }) {
    this.#reserve(9);
    this.#buffer[this.#length] = 0xcf;
    this.#buffer.writeUInt32BE(high, this.#length + 1);
    this.#length = this.#buffer.writeUInt32BE(low, this.#length + 5);
  }

  #nil() {
    this.#reserve(1);
    this.#buffer[this.#length++] = 0xc0;
  }

  #reserve(bytes) {
    if (this.#length + bytes <= this.#buffer.length) return;
    this.#buffer = Buffer.concat([this.#buffer, Buffer.alloc(this.#buffer.length)]);
  }
}
