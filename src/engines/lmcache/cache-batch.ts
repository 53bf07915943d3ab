/** CacheBatch: what one MP server of LMCache reports to its coordinator, checked; names as there. */

export const CACHE_EVENT_TYPES = ['store', 'delete', 'access', 'config'] as const;
export type CacheEventType = (typeof CACHE_EVENT_TYPES)[number];

export interface CacheBatch {
  readonly instanceId: string;
  /** Rises with each start of the server: seconds of the clock. */
  readonly incarnation: number;
  /** From 1 within an incarnation. */
  readonly seq: number;
  readonly eventType: CacheEventType;
  readonly tier: 'l1' | 'l2';
  /** Empty for an access alone. */
  readonly backend: string;
  readonly entries: readonly CacheEntry[];
  /** The backend is a pool that several servers mount. */
  readonly shared: boolean;
  /** Of a config: 0 declares no limit. */
  readonly capacityBytes: number;
  /** Of a config: batches of one declaration have the same. */
  readonly capacityRevision: number;
}

export interface CacheEntry {
  /** Hex, lower case. */
  readonly hashHex: string;
  readonly modelName: string;
  readonly kvRank: number;
  readonly objectGroupId: number;
  readonly cacheSalt: string;
  readonly sizeBytes: number;
  /** Of a store; empty where they are not known. */
  readonly tokenIds: readonly number[];
  /** Position of the first of them in its sequence; -1 where it is not known. */
  readonly tokenOffset: number;
}
