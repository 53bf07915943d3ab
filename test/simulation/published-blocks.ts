/** PublishedBlocks: all that a relay has stored and not removed, whatever a router's tree makes of it. */
import type { LocalIndexer } from '../../src/indexer/local-indexer.ts';
import type { RouterBatch } from '../../src/protocol/router-event.ts';
import { type BlockKey, blockKey } from './block-counts.ts';

export class PublishedBlocks {
  readonly #keys = new Set<BlockKey>();

  /** Follows what is recorded in an index, which is what is about to be published. */
  constructor(indexer: LocalIndexer) {
    const record = indexer.record.bind(indexer);
    indexer.record = (batch): void => {
      this.#take(batch);
      record(batch);
    };
  }

  get keys(): BlockKey[] {
    return [...this.#keys];
  }

  #take({ events }: RouterBatch): void {
    for (const { type, storageTier, blockHashes } of events) {
      if (type === 'cleared') this.#keys.clear();
      for (const hash of blockHashes.toBigInts()) {
        if (type === 'stored') this.#keys.add(blockKey(storageTier, hash));
        else this.#keys.delete(blockKey(storageTier, hash));
      }
    }
  }
}
