/**
 * What a JSON text would become, looked at before anything is built of it: levels, lists and maps cost far more time
 * and memory than bytes, and so do maps of many keys.
 *
 * In      UTF-8; whether it is JSON at all is left to the parser. Never throws, takes no memory of its own.
 */
export interface JsonBounds {
  readonly levels: number;
  /** Lists and maps, over all levels. */
  readonly containers: number;
  /** Of each map. */
  readonly pairsOfOne: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** What there is too much of; null: nothing. */
export function jsonExcess(text: Uint8Array, bounds: JsonBounds): string | null {
  const pairs = new Uint32Array(bounds.levels + 1);
  let depth = 0;
  let containers = 0;
  let isText = false;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === QUOTE) isText = !isText;
    else if (isText) {
      if (byte === BACKSLASH) at++;
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > bounds.levels) return `${bounds.levels} levels`;
      if (++containers > bounds.containers) return `${bounds.containers} lists and maps`;
      pairs[depth] = 0;
    } else if (byte === 0x7d || byte === 0x5d) {
      // More ends than beginnings are no JSON.
      if (--depth < 0) return null;
    } else if (byte === COLON && countUp(pairs, depth) > bounds.pairsOfOne) {
      return `${bounds.pairsOfOne} keys in a map`;
    }
  }
  return null;
}

function countUp(counts: Uint32Array, at: number): number {
  const count = (counts[at] as number) + 1;
  counts[at] = count;
  return count;
}
