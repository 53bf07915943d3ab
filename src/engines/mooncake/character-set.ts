/**
 * CharacterSet: which UTF-16 units one place of a key pattern accepts.
 *
 * In       one literal, `.`, escape or `[...]` of a pattern. `.` accepts every unit.
 * Throws   the given fault for escapes and classes of another meaning than these.
 */
const ASCII = 128;
const LAST_UNIT = 0xffff;
const DIGITS = [0x30, 0x39];
const WORD = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
const SPACES = [
  0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f,
  0x202f, 0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
];
const ESCAPES: Readonly<Record<string, readonly number[]>> = {
  d: DIGITS,
  D: inverse(DIGITS),
  w: WORD,
  W: inverse(WORD),
  s: SPACES,
  S: inverse(SPACES),
};

export class CharacterSet {
  readonly #ascii = new Uint8Array(ASCII);
  readonly #ranges: readonly number[];

  /** First and last unit of each range, in pairs, in any order. */
  constructor(ranges: readonly number[]) {
    this.#ranges = ranges;
    for (let unit = 0; unit < ASCII; unit++) this.#ascii[unit] = isIn(ranges, unit) ? 1 : 0;
  }

  has(unit: number): boolean {
    return unit < ASCII ? this.#ascii[unit] === 1 : isIn(this.#ranges, unit);
  }
}

/** The set that begins at `position` of the pattern, and how many characters it takes there. */
export function classOf(
  text: string,
  position: number,
  Fault: new (message: string) => Error,
): { set: CharacterSet; length: number } {
  const reader = new ClassReader(text, position, Fault);
  return { set: new CharacterSet(reader.read()), length: reader.position - position };
}

class ClassReader {
  readonly #text: string;
  readonly #Fault: new (
    message: string,
  ) => Error;
  position: number;

  constructor(text: string, position: number, Fault: new (message: string) => Error) {
    this.#text = text;
    this.position = position;
    this.#Fault = Fault;
  }

  read(): number[] {
    const character = this.#text[this.position];
    if (character === '[') return this.#bracket();
    if (character === '.') {
      this.position++;
      return [0, LAST_UNIT];
    }
    return this.#single();
  }

  #bracket(): number[] {
    this.position++;
    const isInverse = this.#text[this.position] === '^';
    if (isInverse) this.position++;
    const ranges: number[] = [];
    while (this.#text[this.position] !== ']') {
      const first = this.#single();
      const next = this.#text[this.position + 1];
      if (this.#text[this.position] === '-' && next !== ']' && next !== undefined) {
        this.position++;
        ranges.push(...this.#range(first, this.#single()));
      } else {
        ranges.push(...first);
      }
    }
    this.position++;
    return isInverse ? inverse(ranges) : ranges;
  }

  #range(first: readonly number[], last: readonly number[]): number[] {
    const [from, to] = [first[0] as number, last[0] as number];
    const areUnits = first.length === 2 && from === first[1] && last.length === 2 && to === last[1];
    if (!areUnits || from > to) throw new this.#Fault('has a range in [] that is none');
    return [from, to];
  }

  /** One literal or escape. */
  #single(): number[] {
    const character = this.#text[this.position];
    if (character === undefined) throw new this.#Fault('ends inside [] or after \\');
    this.position++;
    if (character !== '\\') return unitRange(character);
    const escaped = this.#text[this.position] ?? '';
    this.position++;
    const known = ESCAPES[escaped];
    if (known !== undefined) return [...known];
    if (escaped === '' || /[\w\s]/.test(escaped)) {
      throw new this.#Fault(`has the escape \\${escaped}, which is not read`);
    }
    return unitRange(escaped);
  }
}

function unitRange(character: string): number[] {
  const unit = character.charCodeAt(0);
  return [unit, unit];
}

function isIn(ranges: readonly number[], unit: number): boolean {
  for (let at = 0; at < ranges.length; at += 2) {
    if (unit >= (ranges[at] as number) && unit <= (ranges[at + 1] as number)) return true;
  }
  return false;
}

/** All units that are in none of the ranges. */
function inverse(ranges: readonly number[]): number[] {
  const pairs: [number, number][] = [];
  for (let at = 0; at < ranges.length; at += 2) {
    pairs.push([ranges[at] as number, ranges[at + 1] as number]);
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const out: number[] = [];
  let free = 0;
  for (const [first, last] of pairs) {
    if (first > free) out.push(free, first - 1);
    free = Math.max(free, last + 1);
  }
  if (free <= LAST_UNIT) out.push(free, LAST_UNIT);
  return out;
}
