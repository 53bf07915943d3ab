/**
 * LinearMatcher: holds a key against a pattern in one pass, all ways side by side.
 *
 * In/out   a text; the named groups of the way that a backtracking matcher would find first, or null.
 *          The whole text has to match.
 * Costs    at most steps of the program times characters, whatever the pattern and the text.
 * Source   R. Pike's matcher, as in RE2; text and pattern come from different people here.
 */
import type { Instruction, Program } from './linear-pattern.ts';

/** Slots of one way; shared between ways until one of them writes. */
type Slots = readonly number[];

export class LinearMatcher {
  readonly #program: Program;
  /** The text position in which a step was last reached, plus 1. */
  readonly #reachedAt: Int32Array;
  #steps: number[] = [];
  #slots: Slots[] = [];
  #nextSteps: number[] = [];
  #nextSlots: Slots[] = [];
  #matched: Slots | null = null;

  constructor(program: Program) {
    this.#program = program;
    this.#reachedAt = new Int32Array(program.instructions.length);
  }

  /** Groups that took part in the match. */
  match(text: string): Record<string, string> | null {
    const { instructions, groupNames } = this.#program;
    this.#reachedAt.fill(0);
    this.#nextSteps = [];
    this.#nextSlots = [];
    this.#matched = null;
    this.#follow(0, new Array<number>(2 * groupNames.length).fill(-1), 0, text.length);
    for (let position = 0; position < text.length; position++) {
      [this.#steps, this.#nextSteps] = [this.#nextSteps, this.#steps];
      [this.#slots, this.#nextSlots] = [this.#nextSlots, this.#slots];
      this.#nextSteps.length = this.#nextSlots.length = 0;
      if (this.#steps.length === 0) return null;
      const unit = text.charCodeAt(position);
      for (let way = 0; way < this.#steps.length; way++) {
        const step = this.#steps[way] as number;
        const instruction = instructions[step];
        if (instruction?.op === 'character' && instruction.set.has(unit)) {
          this.#follow(step + 1, this.#slots[way] as Slots, position + 1, text.length);
        }
      }
    }
    return this.#matched === null ? null : groupsOf(text, groupNames, this.#matched);
  }

  /** Adds the steps that read a character and are reached from `step` without one, in order. */
  #follow(step: number, slots: Slots, position: number, end: number): void {
    if (this.#reachedAt[step] === position + 1) return;
    this.#reachedAt[step] = position + 1;
    const instruction = this.#program.instructions[step] as Instruction;
    switch (instruction.op) {
      case 'character':
        this.#nextSteps.push(step);
        this.#nextSlots.push(slots);
        return;
      case 'split':
        this.#follow(instruction.preferred, slots, position, end);
        this.#follow(instruction.other, slots, position, end);
        return;
      case 'save': {
        const written = [...slots];
        written[instruction.slot] = position;
        this.#follow(step + 1, written, position, end);
        return;
      }
      case 'match':
        // Reached once a position, and first by the way that a backtracking matcher would find.
        if (position === end) this.#matched = slots;
    }
  }
}

function groupsOf(text: string, names: readonly string[], slots: Slots): Record<string, string> {
  const groups: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const start = slots[2 * index] as number;
    const end = slots[2 * index + 1] as number;
    if (start >= 0 && end >= start) groups[name] = text.slice(start, end);
  }
  return groups;
}
