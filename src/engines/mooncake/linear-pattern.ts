/**
 * Parser of key patterns: the part of JavaScript's regular expressions that can be matched without
 * going back in the key.
 *
 * In       the text of a pattern: literals, `.`, classes, `\d \w \s` and their opposites, groups,
 *          `|`, `* + ? {n} {n,} {n,m}` and their lazy forms. `^` first and `$` last change nothing.
 * Out      a `Program` for `LinearMatcher`.
 * Throws   PatternFault: for anything else (look-around, back references, `\b`), and beyond a bound.
 */
import { type CharacterSet, classOf } from './character-set.ts';

/** A step of a program; numbers are places in the list of steps. */
export type Instruction =
  | { readonly op: 'character'; readonly set: CharacterSet }
  | { readonly op: 'split'; preferred: number; other: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'match' };

export interface Program {
  readonly instructions: readonly Instruction[];
  /** Named groups in the order of their brackets; group n begins at slot 2n and ends at 2n + 1. */
  readonly groupNames: readonly string[];
}

/** The text is no pattern that can be used. The message continues "the pattern …". */
export class PatternFault extends Error {}

type Node =
  | { readonly kind: 'characters'; readonly set: CharacterSet }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'named'; readonly group: number; readonly inner: Node }
  | {
      readonly kind: 'repeat';
      readonly inner: Node;
      readonly min: number;
      readonly max: number;
      readonly lazy: boolean;
    };

/** Steps times characters of a key is what one match can cost. */
const MAX_INSTRUCTIONS = 1024;
const MAX_GROUPS = 16;
const MAX_REPEAT = 256;
const GROUP_NAME = /^[A-Za-z]\w{0,31}$/;
const REPEAT = /^\{(\d{1,3})(,(\d{1,3})?)?\}/;

export function parsePattern(text: string): Program {
  const parser = new Parser(text);
  const node = parser.parse();
  const instructions: Instruction[] = [];
  emit(node, instructions, { left: 4 * MAX_INSTRUCTIONS });
  instructions.push({ op: 'match' });
  return { instructions, groupNames: parser.groupNames };
}

class Parser {
  readonly groupNames: string[] = [];
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text.replace(/^\^/, '').replace(/(?<=(?:^|[^\\])(?:\\\\)*)\$$/, '');
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#position < this.#text.length) throw new PatternFault('has a ) without its (');
    return node;
  }

  #choice(): Node {
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#position < this.#text.length && !'|)'.includes(this.#next())) {
      parts.push(this.#repeated(this.#atom()));
    }
    return { kind: 'sequence', parts };
  }

  #atom(): Node {
    if (this.#take('(')) return this.#group();
    const character = this.#next();
    if ('^$'.includes(character)) throw new PatternFault(`has ${character} inside`);
    if ('*+?{'.includes(character)) throw new PatternFault(`repeats nothing with ${character}`);
    const { set, length } = classOf(this.#text, this.#position, PatternFault);
    this.#position += length;
    return { kind: 'characters', set };
  }

  #group(): Node {
    let group = -1;
    if (this.#take('?<')) {
      const end = this.#text.indexOf('>', this.#position);
      const name = this.#text.slice(this.#position, end);
      if (end < 0 || !GROUP_NAME.test(name)) {
        throw new PatternFault('has a group whose name is not of letters, digits and _');
      }
      if (this.groupNames.includes(name)) throw new PatternFault(`names two groups ${name}`);
      if (this.groupNames.length === MAX_GROUPS) {
        throw new PatternFault(`has more than ${MAX_GROUPS} named groups`);
      }
      group = this.groupNames.push(name) - 1;
      this.#position = end + 1;
    } else if (!this.#take('?:') && this.#next() === '?') {
      throw new PatternFault('has a group that begins with (? and is neither named nor (?:');
    }
    const inner = this.#choice();
    if (!this.#take(')')) throw new PatternFault('has a ( without its )');
    return group < 0 ? inner : { kind: 'named', group, inner };
  }

  #repeated(inner: Node): Node {
    const bounds = this.#bounds();
    if (bounds === null) return inner;
    const lazy = this.#take('?');
    if (this.#bounds() !== null) throw new PatternFault('repeats a repetition');
    return { kind: 'repeat', inner, ...bounds, lazy };
  }

  #bounds(): { min: number; max: number } | null {
    if (this.#take('*')) return { min: 0, max: Infinity };
    if (this.#take('+')) return { min: 1, max: Infinity };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (this.#next() !== '{') return null;
    const counts = REPEAT.exec(this.#text.slice(this.#position));
    if (counts === null) throw new PatternFault('has a { that is no count');
    this.#position += counts[0].length;
    const min = Number(counts[1]);
    const last = counts[2] === undefined ? min : Infinity;
    const max = counts[3] === undefined ? last : Number(counts[3]);
    if (min > MAX_REPEAT || (max > MAX_REPEAT && max !== Infinity) || max < min) {
      throw new PatternFault(`has a count that is not 0 to ${MAX_REPEAT} or falls`);
    }
    return { min, max };
  }

  #next(): string {
    return this.#text[this.#position] ?? '';
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#position)) return false;
    this.#position += token.length;
    return true;
  }
}

/** `budget` counts calls: what repeats nothing adds no step, and could still go on for long. */
function emit(node: Node, out: Instruction[], budget: { left: number }): void {
  if (out.length >= MAX_INSTRUCTIONS || budget.left-- <= 0) {
    throw new PatternFault(`takes more than ${MAX_INSTRUCTIONS} steps`);
  }
  switch (node.kind) {
    case 'characters':
      out.push({ op: 'character', set: node.set });
      return;
    case 'sequence':
      for (const part of node.parts) emit(part, out, budget);
      return;
    case 'named':
      out.push({ op: 'save', slot: 2 * node.group });
      emit(node.inner, out, budget);
      out.push({ op: 'save', slot: 2 * node.group + 1 });
      return;
    case 'choice':
      emitChoice(node.options, out, budget);
      return;
    case 'repeat':
      for (let count = 0; count < node.min; count++) emit(node.inner, out, budget);
      if (node.max === Infinity) emitLoop(node.inner, node.lazy, out, budget);
      else emitOptional(node.inner, node.max - node.min, node.lazy, out, budget);
  }
}

function emitChoice(options: readonly Node[], out: Instruction[], budget: { left: number }): void {
  const ends: { preferred: number; other: number }[] = [];
  for (const [index, option] of options.entries()) {
    const isLast = index === options.length - 1;
    const split = isLast ? null : pushSplit(out);
    emit(option, out, budget);
    if (split === null) continue;
    ends.push(pushSplit(out));
    split.other = out.length;
  }
  // Both ways of such a split lead on: it is a jump.
  for (const end of ends) end.preferred = end.other = out.length;
}

function emitLoop(inner: Node, lazy: boolean, out: Instruction[], budget: { left: number }): void {
  const start = out.length;
  const split = pushSplit(out);
  emit(inner, out, budget);
  const back = pushSplit(out);
  back.preferred = back.other = start;
  leave(split, out.length, lazy);
}

function emitOptional(
  inner: Node,
  count: number,
  lazy: boolean,
  out: Instruction[],
  budget: { left: number },
): void {
  const splits: { preferred: number; other: number }[] = [];
  for (let index = 0; index < count; index++) {
    splits.push(pushSplit(out));
    emit(inner, out, budget);
  }
  for (const split of splits) leave(split, out.length, lazy);
}

/** A split whose preferred way is the next step. */
function pushSplit(out: Instruction[]): { preferred: number; other: number } {
  const split = { op: 'split' as const, preferred: out.length + 1, other: out.length + 1 };
  out.push(split);
  return split;
}

function leave(split: { preferred: number; other: number }, end: number, lazy: boolean): void {
  split.other = lazy ? split.preferred : end;
  if (lazy) split.preferred = end;
}
