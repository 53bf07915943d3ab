/**
 * SequenceNames: how the engine of one rank calls the block at each place of a sequence.
 *
 * In       blocks of the device tier that the engine's stream shows, parents before children.
 * Lookup   from a sequence hash to the engine's block hash. What was shown last counts.
 * Bounds   maxBlocks, in two generations: once the younger is half of that, the older is forgotten and counted.
 */
import { SequenceHasher } from '../../hashing/sequence-hash.ts';
import type { PlacementEvent } from '../../protocol/placement-event.ts';
import { U64Map } from './u64-map.ts';

interface Generation {
  /** Sequence hash → block hash, and back. */
  readonly names: U64Map;
  readonly places: U64Map;
}

const newGeneration = (): Generation => ({ names: new U64Map(), places: new U64Map() });

export class SequenceNames {
  /** Blocks whose place was forgotten for want of room. */
  forgotten = 0;
  /** Words of what a lookup found. */
  low = 0;
  high = 0;
  readonly #maxBlocks: number;
  #young = newGeneration();
  #old = newGeneration();

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  /** Calls back for each place whose name is another one from here on. Changes nothing in the event. */
  show(event: PlacementEvent, onNamed: (sequenceLow: number, sequenceHigh: number) => void): void {
    const { blockHashes, tokensHashes, hasParent, parentLow, parentHigh } = event;
    if (tokensHashes === null) return;
    const hasher = new SequenceHasher();
    if (hasParent) {
      // Without its parent nobody can tell where a block stands.
      if (!this.placeOf(parentLow, parentHigh)) return;
      hasher.startBehind(this.low, this.high);
    }
    for (let index = 0; index < blockHashes.length; index++) {
      hasher.push(tokensHashes.lowAt(index), tokensHashes.highAt(index));
      const low = blockHashes.lowAt(index);
      const high = blockHashes.highAt(index);
      const isPlaced = this.placeOf(low, high);
      const isThere = isPlaced && this.low === hasher.low && this.high === hasher.high;
      // Another life of the engine: the name says nothing of its place before.
      if (isPlaced && !isThere) onNamed(this.low, this.high);
      const isNamed = this.#find('names', hasher.low, hasher.high);
      const isKnown = isThere && isNamed && this.low === low && this.high === high;
      this.#set(hasher.low, hasher.high, low, high);
      if (!isKnown) onNamed(hasher.low, hasher.high);
    }
  }

  /** Whether the place has a name that is no other place's by now, which is then in `low` and `high`. */
  find(sequenceLow: number, sequenceHigh: number): boolean {
    if (!this.#find('names', sequenceLow, sequenceHigh)) return false;
    const { low, high } = this;
    const isOwn = this.isNameOf(low, high, sequenceLow, sequenceHigh);
    this.low = low;
    this.high = high;
    return isOwn;
  }

  /** Whether the block hash names this place, as far as is known. */
  isNameOf(low: number, high: number, sequenceLow: number, sequenceHigh: number): boolean {
    if (!this.placeOf(low, high)) return true;
    return this.low === sequenceLow && this.high === sequenceHigh;
  }

  /** Whether it is known what place the block hash names, which is then in `low` and `high`. */
  placeOf(low: number, high: number): boolean {
    return this.#find('places', low, high);
  }

  #find(by: keyof Generation, low: number, high: number): boolean {
    for (const generation of [this.#young, this.#old]) {
      const entry = generation[by].find(low, high);
      if (entry < 0) continue;
      this.low = generation[by].valueLow(entry);
      this.high = generation[by].valueHigh(entry);
      return true;
    }
    return false;
  }

  #set(sequenceLow: number, sequenceHigh: number, low: number, high: number): void {
    const { names, places } = this.#young;
    names.set(sequenceLow, sequenceHigh, low, high);
    places.set(low, high, sequenceLow, sequenceHigh);
    if (Math.max(names.size, places.size) * 2 < this.#maxBlocks) return;
    this.forgotten += this.#old.names.size;
    this.#old = this.#young;
    this.#young = newGeneration();
  }
}
