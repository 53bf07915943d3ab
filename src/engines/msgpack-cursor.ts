/**
 * MsgpackCursor: walks over the structure of one MessagePack payload.
 *
 * Reads    what is asked for and nothing ahead; lengths are only believed as far as bytes are there.
 * Throws   DAMAGED for bytes that are no MessagePack (cut off, 0xc1, too deep), BAD_FIELD for a value
 *          of another type than asked for.
 */
import { BAD_FIELD, DAMAGED } from './decode-fault.ts';

/** Containers inside each other; the real reader gives up at 1,024. */
const MAX_DEPTH = 1023;

const NIL = 0xc0;
const EMPTY = new Uint8Array(0);

export class MsgpackCursor {
  position = 0;
  /** Containers that are open around the value at `position`. */
  depth = 0;
  protected bytes: Uint8Array = EMPTY;
  protected end = 0;
  #view: DataView | null = null;

  open(payload: Uint8Array): void {
    this.bytes = payload;
    this.#view = null;
    this.end = payload.length;
    this.position = 0;
    this.depth = 0;
  }

  /** Drops the payload, so that its memory does not stay alive with the reader. */
  close(): void {
    this.bytes = EMPTY;
    this.#view = null;
  }

  /** Made when it is first wanted, which most payloads never do: the kernel reads them. */
  protected get view(): DataView {
    const { buffer, byteOffset, byteLength } = this.bytes;
    this.#view ??= new DataView(buffer, byteOffset, byteLength);
    return this.#view;
  }

  /** First byte of the value at `position`, not consumed. */
  peek(): number {
    if (this.position >= this.end) throw DAMAGED;
    return this.bytes[this.position] as number;
  }

  /** Consumes a nil; false and nothing consumed for any other value. */
  skipNil(): boolean {
    if (this.peek() !== NIL) return false;
    this.position++;
    return true;
  }

  /** Element count of the array that starts here; throws BAD_FIELD for another type. */
  openArray(): number {
    const marker = this.peek();
    if (marker >= 0x90 && marker <= 0x9f) return this.#enter(1, marker & 15);
    if (marker === 0xdc) return this.#enter(3, this.unsigned(2));
    if (marker === 0xdd) return this.#enter(5, this.unsigned(4));
    throw BAD_FIELD;
  }

  /** Pair count of the map that starts here; throws BAD_FIELD for another type. */
  openMap(): number {
    const marker = this.peek();
    if (marker >= 0x80 && marker <= 0x8f) return this.#enter(1, marker & 15);
    if (marker === 0xde) return this.#enter(3, this.unsigned(2));
    if (marker === 0xdf) return this.#enter(5, this.unsigned(4));
    throw BAD_FIELD;
  }

  closeContainer(): void {
    this.depth--;
  }

  isArray(): boolean {
    const marker = this.peek();
    return (marker >= 0x90 && marker <= 0x9f) || marker === 0xdc || marker === 0xdd;
  }

  isMap(): boolean {
    const marker = this.peek();
    return (marker >= 0x80 && marker <= 0x8f) || marker === 0xde || marker === 0xdf;
  }

  isText(): boolean {
    const marker = this.peek();
    return (marker >= 0xa0 && marker <= 0xbf) || (marker >= 0xd9 && marker <= 0xdb) || this.isBin();
  }

  isBin(): boolean {
    const marker = this.peek();
    return marker >= 0xc4 && marker <= 0xc6;
  }

  isInteger(): boolean {
    const marker = this.peek();
    return marker < 0x80 || marker >= 0xe0 || (marker >= 0xcc && marker <= 0xd3);
  }

  /** Skips one value of any type and shape. */
  skip(): void {
    const marker = this.peek();
    if (marker < 0x80 || marker >= 0xe0 || marker === NIL || marker === 0xc2 || marker === 0xc3) {
      this.position++;
    } else if (this.isArray()) {
      this.#skipElements(this.openArray());
    } else if (this.isMap()) {
      this.#skipElements(this.openMap() * 2);
    } else if (this.isText()) {
      this.consume(this.openText());
    } else if (marker === 0xca || marker === 0xcb) {
      this.consume(marker === 0xca ? 5 : 9);
    } else if (marker >= 0xcc && marker <= 0xd3) {
      this.consume(1 + (1 << (marker & 3)));
    } else {
      this.#skipExtension(marker);
    }
  }

  #skipElements(count: number): void {
    for (let index = 0; index < count; index++) this.skip();
    this.closeContainer();
  }

  #skipExtension(marker: number): void {
    if (this.depth + 1 > MAX_DEPTH) throw DAMAGED;
    if (marker >= 0xd4 && marker <= 0xd8) this.consume(2 + (1 << (marker - 0xd4)));
    else if (marker === 0xc7) this.consume(3 + this.unsigned(1));
    else if (marker === 0xc8) this.consume(4 + this.unsigned(2));
    else if (marker === 0xc9) this.consume(6 + this.unsigned(4));
    else throw DAMAGED;
  }

  /** Consumes the header of a text and returns its byte count, which the payload holds. */
  protected openText(): number {
    const marker = this.peek();
    let header = 1;
    let length = marker & 31;
    if (marker === 0xd9 || marker === 0xc4) {
      header = 2;
      length = this.unsigned(1);
    } else if (marker === 0xda || marker === 0xc5) {
      header = 3;
      length = this.unsigned(2);
    } else if (marker === 0xdb || marker === 0xc6) {
      header = 5;
      length = this.unsigned(4);
    } else if (marker < 0xa0 || marker > 0xbf) {
      throw BAD_FIELD;
    }
    if (this.position + header + length > this.end) throw DAMAGED;
    this.position += header;
    return length;
  }

  /** Big-endian number of `width` bytes behind the marker at `position`. */
  protected unsigned(width: number): number {
    const at = this.position + 1;
    if (at + width > this.end) throw DAMAGED;
    let value = 0;
    for (let index = 0; index < width; index++)
      value = value * 256 + (this.bytes[at + index] as number);
    return value;
  }

  /** Every element takes a byte at least, so a count beyond the payload's end is a lie. */
  #enter(headerBytes: number, count: number): number {
    if (++this.depth > MAX_DEPTH) throw DAMAGED;
    this.position += headerBytes;
    if (this.position + count > this.end) throw DAMAGED;
    return count;
  }

  protected consume(byteCount: number): void {
    if (this.position + byteCount > this.end) throw DAMAGED;
    this.position += byteCount;
  }
}
