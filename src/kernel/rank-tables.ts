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

  constructor(newTable: (key: Key) => Table, maxKeys: number = Number.POSITIVE_INFINITY) {
    this.#newTable = newTable;
    this.#maxKeys = maxKeys;
  }

  /** Ranks that have had a table since they were last forgotten. */
  get dpRanks(): IterableIterator<number> {
    return this.#ranks.keys();
  }

  get(dpRank: number, key: Key): Table | undefined {
    return this.#ranks.get(dpRank)?.get(key);
  }

  /** Undefined where a bound keeps from it. */
  getOrMake(dpRank: number, key: Key): Table | undefined {
    let tables = this.#ranks.get(dpRank);
    if (tables === undefined) {
      if (this.#ranks.size >= MAX_RANKS) return undefined;
      tables = new Map();
      this.#ranks.set(dpRank, tables);
    }
    let table = tables.get(key);
    if (table === undefined && tables.size < this.#maxKeys) {
      table = this.#newTable(key);
      tables.set(key, table);
    }
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
  }
}
