/**
 * RankTables: a table for each (rank, key), the key a storage tier or whatever else tells them apart.
 *
 * Owns     its tables, each made when it is first wanted, until its rank is forgotten.
 * Bounds   MAX_RANKS ranks, `maxKeys` keys a rank; beyond them there is no table.
 */

/** Ranks of one stream; one that names more is no worker's. */
const MAX_RANKS = 1024;

export class RankTables<Key, Table extends { free(): void }> {
  readonly #newTable: (key: Key) => Table;
  readonly #maxKeys: number;
  readonly #ranks = new Map<number, Map<Key, Table>>();
  // The table asked for last, which the next event mostly wants again.
  #lastRank = -1;
  #lastKey: Key | undefined;
  #last: Table | undefined;

  constructor(newTable: (key: Key) => Table, maxKeys: number = Number.POSITIVE_INFINITY) {
    this.#newTable = newTable;
    this.#maxKeys = maxKeys;
  }

  /** Ranks that have had a table since they were last forgotten. */
  get dpRanks(): IterableIterator<number> {
    return this.#ranks.keys();
  }

  /** True where no rank has a table. */
  get isEmpty(): boolean {
    return this.#ranks.size === 0;
  }

  get(dpRank: number, key: Key): Table | undefined {
    if (dpRank === this.#lastRank && key === this.#lastKey) return this.#last;
    return this.#remember(dpRank, key, this.#ranks.get(dpRank)?.get(key));
  }

  /** Undefined where a bound keeps from it. */
  getOrMake(dpRank: number, key: Key): Table | undefined {
    return this.get(dpRank, key) ?? this.#remember(dpRank, key, this.#make(dpRank, key));
  }

  #make(dpRank: number, key: Key): Table | undefined {
    let tables = this.#ranks.get(dpRank);
    if (tables === undefined) {
      if (this.#ranks.size >= MAX_RANKS) return undefined;
      tables = new Map();
      this.#ranks.set(dpRank, tables);
    }
    if (tables.size >= this.#maxKeys) return undefined;
    const table = this.#newTable(key);
    tables.set(key, table);
    return table;
  }

  #remember(dpRank: number, key: Key | undefined, table: Table | undefined): Table | undefined {
    this.#lastRank = dpRank;
    this.#lastKey = key;
    this.#last = table;
    return table;
  }

  tablesOf(dpRank: number): ReadonlyMap<Key, Table> | undefined {
    return this.#ranks.get(dpRank);
  }

  /** Frees the tables of a rank; `onTable` is told of each before. */
  forgetRank(dpRank: number, onTable?: (table: Table, key: Key) => void): void {
    for (const [key, table] of this.#ranks.get(dpRank) ?? []) {
      onTable?.(table, key);
      table.free();
    }
    this.#ranks.delete(dpRank);
    this.#remember(-1, undefined, undefined);
  }
}
