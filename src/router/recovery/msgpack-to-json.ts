/**
 * MessagePack to JSON text, byte for byte through: nothing is built in between, so that a dump of any
 * size can be turned in slices, and a few bytes that announce a huge list cost nothing.
 *
 * In       values one after the other.
 * Out      the same values as JSON, separated by commas; integers of 64 bits keep all their digits.
 * Throws   MsgpackError for what is cut off, nested too deeply, or has no form in JSON.
 */

const MAX_DEPTH = 32;

export class MsgpackError extends Error {}

interface Container {
  readonly isMap: boolean;
  /** Keys and values count one each. */
  readonly length: number;
  taken: number;
}

export class MsgpackToJson {
  readonly #bytes: Buffer;
  readonly #open: Container[] = [];
  #at = 0;
  #text = '';
  #values = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Values begun so far that stand in no other. */
  get values(): number {
    return this.#values;
  }

  /** Text of about the next `maxBytes` of MessagePack. */
  next(maxBytes: number = Number.POSITIVE_INFINITY): string {
    const until = Math.min(this.#bytes.length, this.#at + maxBytes);
    while (this.#at < until) this.#takeValue();
    if (this.isAtEnd && this.#open.length > 0) throw new MsgpackError('it is cut off');
    const text = this.#text;
    this.#text = '';
    return text;
  }

  #takeValue(): void {
    const container = this.#open.at(-1);
    const isKey = container?.isMap === true && container.taken % 2 === 0;
    if (container === undefined) this.#text += this.#values++ > 0 ? ',' : '';
    else if (container.taken > 0) this.#text += container.isMap && !isKey ? ':' : ',';
    const marker = this.#unsigned(1);
    if (isKey && !isText(marker)) throw new MsgpackError('a key is no text');
    if (container !== undefined) container.taken++;
    this.#putValue(marker);
    this.#closeFull();
  }

  #putValue(marker: number): void {
    if (marker < 0x80) this.#text += marker;
    else if (marker < 0x90) this.#openContainer(true, marker & 0x0f);
    else if (marker < 0xa0) this.#openContainer(false, marker & 0x0f);
    else if (marker < 0xc0) this.#putText(marker & 0x1f);
    else if (marker >= 0xe0) this.#text += marker - 256;
    else this.#putMarked(marker);
  }

  #putMarked(marker: number): void {
    if (marker === 0xc0) this.#text += 'null';
    else if (marker === 0xc2) this.#text += 'false';
    else if (marker === 0xc3) this.#text += 'true';
    else if (marker >= 0xcc && marker <= 0xce) this.#text += this.#unsigned(1 << (marker - 0xcc));
    else if (marker === 0xcf) this.#text += this.#bytes.readBigUInt64BE(this.#skip(8)).toString();
    else if (marker >= 0xd0 && marker <= 0xd2) {
      const byteCount = 1 << (marker - 0xd0);
      this.#text += this.#bytes.readIntBE(this.#skip(byteCount), byteCount);
    } else if (marker === 0xd3) this.#text += this.#bytes.readBigInt64BE(this.#skip(8)).toString();
    else if (marker >= 0xd9 && marker <= 0xdb) this.#putText(this.#unsigned(1 << (marker - 0xd9)));
    else if (marker === 0xdc) this.#openContainer(false, this.#unsigned(2));
    else if (marker === 0xdd) this.#openContainer(false, this.#unsigned(4));
    else if (marker === 0xde) this.#openContainer(true, this.#unsigned(2));
    else if (marker === 0xdf) this.#openContainer(true, this.#unsigned(4));
    else throw new MsgpackError(`0x${marker.toString(16)} has no form in JSON`);
  }

  #openContainer(isMap: boolean, count: number): void {
    if (this.#open.length === MAX_DEPTH) throw new MsgpackError('it is nested too deeply');
    this.#text += isMap ? '{' : '[';
    this.#open.push({ isMap, length: isMap ? 2 * count : count, taken: 0 });
  }

  #closeFull(): void {
    for (let last = this.#open.at(-1); last?.taken === last?.length; last = this.#open.at(-1)) {
      if (last === undefined) return;
      this.#text += last.isMap ? '}' : ']';
      this.#open.pop();
    }
  }

  #putText(byteCount: number): void {
    const from = this.#skip(byteCount);
    this.#text += JSON.stringify(this.#bytes.toString('utf8', from, this.#at));
  }

  #unsigned(byteCount: number): number {
    return this.#bytes.readUIntBE(this.#skip(byteCount), byteCount);
  }

  /** Moves on; where it was before. */
  #skip(byteCount: number): number {
    const from = this.#at;
    if (from + byteCount > this.#bytes.length) throw new MsgpackError('it is cut off');
    this.#at = from + byteCount;
    return from;
  }
}

function isText(marker: number): boolean {
  return (marker >= 0xa0 && marker < 0xc0) || (marker >= 0xd9 && marker <= 0xdb);
}
