/** ObjectChange: one change of what the stores hold, and in which scope it happened. */
import type { ObjectAttributes } from './attribute-sets.ts';

/** Why something changed: an event said so, the store's own answer did, or it can no longer be believed. */
export type ChangeCause = 'event' | 'reconciled' | 'invalidated';

/**
 * Objects that go together: one source, one backend, one tenant. Changes name a scope by the same object for as
 * long as it holds something.
 */
export interface ObjectScope {
  /** `mooncake` and the like. */
  readonly source: string;
  /** Empty while the source has not told it. */
  readonly backendId: string;
  readonly tenantId: string;
}

export type ObjectChange =
  | {
      /** It can be read on one medium more, or is known by other attributes. */
      readonly type: 'stored';
      readonly scope: ObjectScope;
      /** UTF-8; valid until the listener returns. */
      readonly key: Uint8Array;
      readonly medium: string;
      /** All it has from here on, sorted. */
      readonly media: readonly string[];
      readonly attributes: ObjectAttributes;
      /** It was not held at all before. */
      readonly isNew: boolean;
      readonly cause: ChangeCause;
    }
  | {
      readonly type: 'removed';
      readonly scope: ObjectScope;
      readonly key: Uint8Array;
      readonly medium: string;
      /** What it has left; none: it is gone. */
      readonly media: readonly string[];
      readonly cause: ChangeCause;
    }
  | {
      /** Every object of the scope is gone. */
      readonly type: 'cleared';
      readonly scope: ObjectScope;
      readonly objectCount: number;
      /** Of these objects, UTF-8; for as long as the listener runs. */
      readonly keys: () => Iterable<Uint8Array>;
      readonly cause: ChangeCause;
    };
