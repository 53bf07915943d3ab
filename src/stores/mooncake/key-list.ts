/**
 * KeyList: the keys of a master's list, one a line, as views of the list's bytes.
 *
 * Askable  the query splits its keys at commas and the list its own at line feeds, so a key with either
 *          cannot be asked for; nor can bytes that are no UTF-8 be spelled in a request.
 */
import { isUtf8 } from 'node:buffer';

const LINE_FEED = 0x0a;
const COMMA = 0x2c;

export class KeyList {
  readonly #text: Uint8Array;

  constructor(text: Uint8Array) {
    this.#text = text;
  }

  *keys(): Generator<Uint8Array> {
    const text = this.#text;
    for (let start = 0; start < text.length; ) {
      const found = text.indexOf(LINE_FEED, start);
      const end = found < 0 ? text.length : found;
      if (end > start) yield text.subarray(start, end);
      start = end + 1;
    }
  }
}

export function isAskable(key: Uint8Array): boolean {
  return key.length > 0 && !key.includes(COMMA) && !key.includes(LINE_FEED) && isUtf8(key);
}
