/**
 * What a message of the bridge would become, counted before anything is made of it: a byte of MessagePack can
 * become an object, and a reference many times a list.
 *
 * In      any bytes. Never throws, takes no memory of its own.
 * Bounds  several times what a bridge sends in one message with the settings it has by default.
 * Faults  `msgpack`: cut off, no MessagePack, or an extension other than a time, which no bridge sends;
 *         `oversize`: more than the bounds.
 */
export const MAX_VALUES = 4_000_000;
export const MAX_CONTAINERS = 500_000;
export const MAX_PAIRS = 1_000_000;

export type MessageSizeFault = 'msgpack' | 'oversize';

/** The one marker without a meaning; also what there is behind the end. */
const NEVER_USED = 0xc1;
const TIME_EXTENSION = 0xff;
/** Bytes of the numbers 0xca to 0xd3. */
const NUMBER_BYTES = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8];

export function messageSizeFault(bytes: Uint8Array): MessageSizeFault | null {
  return new SizeWalk(bytes).run();
}

class SizeWalk {
  readonly #bytes: Uint8Array;
  #position = 0;
  /** Values that must still come. */
  #open = 1;
  #values = 1;
  #containers = 0;
  #pairs = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  run(): MessageSizeFault | null {
    for (; this.#open > 0; this.#open--) {
      if (!this.#skip(this.#bytes[this.#position++] ?? NEVER_USED)) return 'msgpack';
      // A count is only believed as far as there are bytes for it.
      if (this.#position + this.#open - 1 > this.#bytes.length) return 'msgpack';
      if (this.#values > MAX_VALUES || this.#containers > MAX_CONTAINERS) return 'oversize';
      if (this.#pairs > MAX_PAIRS) return 'oversize';
    }
    return null;
  }

  /** False: no MessagePack. */
  #skip(marker: number): boolean {
    if (marker < 0x80 || marker >= 0xe0) return true;
    if (marker < 0xa0) this.#enter(marker & 15, marker < 0x90);
    else if (marker < 0xc0) this.#pass(marker & 31);
    else return this.#skipLong(marker);
    return true;
  }

  /** Markers 0xc0 to 0xdf. */
  #skipLong(marker: number): boolean {
    if (marker <= 0xc3) return marker !== NEVER_USED;
    if (marker <= 0xc6) this.#pass(this.#length(1 << (marker - 0xc4)));
    else if (marker <= 0xc9) return this.#skipExtension(this.#length(1 << (marker - 0xc7)));
    else if (marker <= 0xd3) this.#pass(NUMBER_BYTES[marker - 0xca] as number);
    else if (marker <= 0xd8) return this.#skipExtension(1 << (marker - 0xd4));
    else if (marker <= 0xdb) this.#pass(this.#length(1 << (marker - 0xd9)));
    else if (marker <= 0xdd) this.#enter(this.#length(2 << (marker - 0xdc)), false);
    else this.#enter(this.#length(2 << (marker - 0xde)), true);
    return true;
  }

  #pass(length: number): void {
    this.#position += length;
  }

  #skipExtension(length: number): boolean {
    const isTime = this.#bytes[this.#position] === TIME_EXTENSION;
    this.#pass(1 + length);
    return isTime;
  }

  #enter(count: number, isMap: boolean): void {
    const values = isMap ? 2 * count : count;
    this.#containers++;
    this.#values += values;
    this.#open += values;
    if (isMap) this.#pairs += count;
  }

  #length(width: number): number {
    let length = 0;
    for (let index = 0; index < width; index++)
      length = length * 256 + (this.#bytes[this.#position++] ?? 0);
    return length;
  }
}
