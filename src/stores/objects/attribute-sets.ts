/**
 * AttributeSets: what is known of an object besides key and media, each combination once.
 *
 * Numbers  1 and up; 0 stands for nothing known. A number is free again when no object has it.
 * Bounds   combinations; what comes beyond is not kept, and counted.
 */

/** As the store's events have them; null: not told. */
export interface ObjectAttributes {
  readonly groupId: string | null;
  readonly modelName: string | null;
  readonly blockSize: number | null;
  readonly loraName: string | null;
  readonly additionalSalt: string | null;
  readonly sessionId: string | null;
}

export const NO_ATTRIBUTES: ObjectAttributes = {
  groupId: null,
  modelName: null,
  blockSize: null,
  loraName: null,
  additionalSalt: null,
  sessionId: null,
};

interface AttributeSet {
  readonly name: string;
  readonly attributes: ObjectAttributes;
  holders: number;
}

export class AttributeSets {
  /** Objects that came when there was no room for theirs. */
  overflows = 0;
  readonly #maxSets: number;
  readonly #numbers = new Map<string, number>();
  readonly #sets: (AttributeSet | null)[] = [null];
  readonly #free: number[] = [];
  #lastAttributes: ObjectAttributes = NO_ATTRIBUTES;
  #lastNumber = 0;

  constructor(maxSets: number) {
    this.#maxSets = maxSets;
  }

  /** The number of these attributes for one more object. */
  take(attributes: ObjectAttributes): number {
    const number = this.#numberOf(attributes);
    if (number === 0) return 0;
    (this.#sets[number] as AttributeSet).holders++;
    return number;
  }

  /** One object less has it. */
  release(number: number): void {
    const set = this.#sets[number];
    if (set === undefined || set === null || --set.holders > 0) return;
    this.#numbers.delete(set.name);
    this.#sets[number] = null;
    this.#free.push(number);
    this.#lastAttributes = NO_ATTRIBUTES;
    this.#lastNumber = 0;
  }

  of(number: number): ObjectAttributes {
    return this.#sets[number]?.attributes ?? NO_ATTRIBUTES;
  }

  #numberOf(attributes: ObjectAttributes): number {
    if (areEqual(attributes, this.#lastAttributes)) return this.#lastNumber;
    const { groupId, modelName, blockSize, loraName, additionalSalt, sessionId } = attributes;
    if (areEqual(attributes, NO_ATTRIBUTES)) return 0;
    const name = JSON.stringify([
      groupId,
      modelName,
      blockSize,
      loraName,
      additionalSalt,
      sessionId,
    ]);
    const number = this.#numbers.get(name) ?? this.#add(name, attributes);
    if (number > 0) {
      this.#lastAttributes = attributes;
      this.#lastNumber = number;
    }
    return number;
  }

  #add(name: string, attributes: ObjectAttributes): number {
    if (this.#numbers.size >= this.#maxSets) {
      this.overflows++;
      return 0;
    }
    const { groupId, modelName, blockSize, loraName, additionalSalt, sessionId } = attributes;
    const kept = { groupId, modelName, blockSize, loraName, additionalSalt, sessionId };
    const number = this.#free.pop() ?? this.#sets.length;
    this.#sets[number] = { name, attributes: kept, holders: 0 };
    this.#numbers.set(name, number);
    return number;
  }
}

function areEqual(one: ObjectAttributes, other: ObjectAttributes): boolean {
  return (
    one.groupId === other.groupId &&
    one.modelName === other.modelName &&
    one.blockSize === other.blockSize &&
    one.loraName === other.loraName &&
    one.additionalSalt === other.additionalSalt &&
    one.sessionId === other.sessionId
  );
}
