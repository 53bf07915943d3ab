/**
 * TokenList: token ids as u32, little endian, in kernel memory, as the block hash reads them.
 *
 * Owns     its place in the arena until the next native batch is read.
 */
import { arena } from './arena.ts';
import { ArenaPool } from './arena-pool.ts';
import { views } from './kernel.ts';

export class TokenList {
  length: number;
  #address: number;
  #epoch: number;

  /** A list of `length` tokens, contents undefined. */
  constructor(length: number) {
    this.length = length;
    this.#address = arena.take(length * 4);
    this.#epoch = arena.epoch;
  }

  /** The `length` tokens at `address` in the arena. Pooled. */
  static pooled(length: number, address: number): TokenList {
    const list = pool.take();
    list.length = length;
    list.#address = address;
    list.#epoch = arena.epoch;
    return list;
  }

  static of(...tokens: readonly number[]): TokenList {
    const list = new TokenList(tokens.length);
    for (const [index, token] of tokens.entries()) list.set(index, token);
    return list;
  }

  /** Where the tokens lie. Throws where the list outlived its batch. */
  get address(): number {
    if (this.#epoch !== arena.epoch) {
      throw new Error('A TokenList was used after the next native batch had been read');
    }
    return this.#address;
  }

  at(index: number): number {
    return views.u32[(this.address >>> 2) + index] as number;
  }

  set(index: number, token: number): void {
    views.u32[(this.address >>> 2) + index] = token;
  }

  /** A copy of `length` tokens from `start`, followed by room for `extraWords` more. */
  window(start: number, length: number, extraWords: number): TokenList {
    const copy = new TokenList(length + extraWords);
    const from = this.address + start * 4;
    views.u8.copyWithin(copy.address, from, from + length * 4);
    copy.length = length;
    return copy;
  }
}

const pool = new ArenaPool(() => new TokenList(0));
