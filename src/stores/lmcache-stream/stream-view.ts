/**
 * StreamView: what the batches of one model say, applied to the state and to the chunks at the routers.
 *
 * Objects  source `lmcache`, backend `l1`, tenant MODEL, key the chunk's hash in hex, medium `cpu`. The stream tells no
 *          salt, rank or group. Another source of LMCache that does has other scopes: `l1/BACKEND` and `l2/BACKEND`, and
 *          MODEL@SALT where there is a salt, as neither name may hold an `@`.
 * Removed  once is gone, however often it was stored.
 * Portions what a batch tells is applied over several turns where it is much: an eviction of all that is held is one
 *          record. It is done before the next batch is looked at.
 * Loss     or another incarnation: everything told before is given up, at the routers over several turns. Records behind
 *          a loss are whole again, so it goes on from there: the log from its start would tell the same and end at the
 *          same loss.
 */
import {
  readStreamBatch,
  type StreamBatch,
  type StreamRecord,
} from '../../engines/lmcache/stream-batch.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import { LMCACHE } from '../lmcache/object-names.ts';
import { NO_ATTRIBUTES, type ObjectAttributes } from '../objects/attribute-sets.ts';
import type { ObjectScope } from '../objects/object-change.ts';
import type { ObjectState } from '../objects/object-state.ts';
import type { ChunkFeed } from '../placement/chunk-feed.ts';

/** Name of the stream among the sources. */
export const LMCACHE_STREAM = 'lmcache_stream';
export const STREAM_BACKEND = 'l1';
const MEDIUM = 'cpu';

/** Changes of one turn; so many tokens to hash take as long as one. */
const MAX_PORTION_CHANGES = 4096;
const TOKENS_A_CHANGE = 16;

/** What the subscription has to do next; a fault: the batch is not there. */
export type StreamStep =
  /** Ask for more. */
  | 'next'
  /** The same, once it has been applied. */
  | 'later'
  /** Subscribe again from the view's cursor. */
  | 'again'
  | 'disabled'
  /** The batch is more than is read at once: ask for smaller ones. */
  | 'oversize'
  | 'malformed';

export interface StreamViewOptions {
  readonly modelName: string;
  readonly state: ObjectState;
  readonly metrics: SourceMetrics;
  /** Null where no chunks are placed. */
  readonly feed: ChunkFeed | null;
  readonly onLoss: (cause: 'gap' | 'restart' | 'unreadable') => void;
  /** Calls back once it is the turn of what can wait. */
  readonly defer: (portion: () => void) => void;
}

export class StreamView {
  /** The last number had; 0 asks for the whole log. */
  cursor = 0;
  readonly #options: StreamViewOptions;
  readonly #scope: ObjectScope;
  #incarnation: bigint | null = null;
  /** What the last batch tells and has not been applied: its cost, a change each. */
  #left: Iterator<number> | null = null;

  constructor(options: StreamViewOptions) {
    this.#options = options;
    this.#scope = { source: LMCACHE, backendId: STREAM_BACKEND, tenantId: options.modelName };
  }

  /** Routers are still told of what was given up. */
  get isWithdrawing(): boolean {
    return this.#options.feed?.isWithdrawing === true;
  }

  get objects(): number {
    return this.#options.state.scope(this.#scope)?.table.size ?? 0;
  }

  /** `onApplied` is called only where the step is `later`, and not where another batch comes first. */
  take(payload: Uint8Array, onApplied: () => void): StreamStep {
    const { metrics, modelName } = this.#options;
    this.#applyLeft(Number.POSITIVE_INFINITY);
    metrics.messages++;
    metrics.bytes += payload.length;
    const batch = readStreamBatch(payload, modelName);
    if (typeof batch === 'string') {
      metrics.malformed[batch]++;
      return batch === 'oversize' ? 'oversize' : 'malformed';
    }
    if (!batch.isEnabled) return 'disabled';
    if (this.#isOfAnotherLife(batch)) {
      const hadCursor = this.cursor > 0;
      this.#restart(batch.incarnation);
      // Its first records lie before the cursor of the life before.
      if (hadCursor) return 'again';
    }
    this.#apply(batch);
    if (this.#applyLeft(MAX_PORTION_CHANGES)) return 'next';
    this.#deferLeft(onApplied);
    return 'later';
  }

  /** What has not been applied by now never is. */
  stop(): void {
    this.#left = null;
    this.#options.feed?.stop();
  }

  /** Nobody can confirm any more what is held: it goes, and comes again with the whole log. */
  giveUp(): void {
    this.#left = null;
    this.#withdraw();
    this.cursor = 0;
    this.#incarnation = null;
  }

  #isOfAnotherLife({ incarnation }: StreamBatch): boolean {
    return this.#incarnation !== null && this.#incarnation !== incarnation;
  }

  #restart(incarnation: bigint): void {
    this.#options.metrics.restarts++;
    this.#options.onLoss('restart');
    this.#withdraw();
    this.#incarnation = incarnation;
    this.cursor = 0;
  }

  #apply(batch: StreamBatch): void {
    const { metrics } = this.#options;
    for (const fault of batch.faults) metrics.droppedEvents[fault]++;
    if (batch.isLost) this.#noteLost();
    this.#incarnation = batch.incarnation;
    this.cursor = batch.nextCursor;
    // All that stands before it goes, and goes once: a walk over all chunks for each would hold the event loop.
    const lastUnreadable = batch.records.findLastIndex(({ kind }) => kind === 'unreadable');
    if (lastUnreadable >= 0) {
      this.#options.onLoss('unreadable');
      this.#withdraw();
    }
    for (const record of batch.records.slice(0, lastUnreadable + 1)) this.#countWithdrawn(record);
    this.#left = this.#changes(batch.records.slice(lastUnreadable + 1));
  }

  *#changes(records: readonly StreamRecord[]): Generator<number> {
    for (const record of records) {
      if (record.kind === 'stored') {
        this.#store(record.hash, record.parentHash, record.tokenIds);
        yield 1 + record.tokenIds.length / TOKENS_A_CHANGE;
      } else if (record.kind === 'removed') {
        for (const hash of record.hashes) {
          this.#remove(hash);
          yield 1;
        }
      }
    }
  }

  /** True where nothing is left. */
  #applyLeft(changes: number): boolean {
    const left = this.#left;
    for (let applied = 0; applied < changes && left !== null; ) {
      const { value, done } = left.next();
      if (done === true) {
        this.#left = null;
        return true;
      }
      applied += value;
    }
    return left === null;
  }

  #deferLeft(onApplied: () => void): void {
    const left = this.#left;
    this.#options.defer(() => {
      // Another batch came, or all was given up.
      if (this.#left !== left) return;
      if (this.#applyLeft(MAX_PORTION_CHANGES)) onApplied();
      else this.#deferLeft(onApplied);
    });
  }

  /** It makes no difference to what is held: what it tells would be given up at once. */
  #countWithdrawn(record: StreamRecord): void {
    if (record.kind === 'unreadable') return;
    const counts = this.#options.metrics.events[record.kind];
    const count = record.kind === 'stored' ? 1 : record.hashes.length;
    counts.received += count;
    counts.repeated += count;
  }

  #noteLost(): void {
    // At first contact nothing has been told that could be wrong.
    if (this.#incarnation === null) return;
    this.#options.metrics.lostMessages++;
    this.#options.onLoss('gap');
    this.#withdraw();
  }

  #store(hash: Uint8Array, parentHash: Uint8Array | null, tokenIds: readonly number[]): void {
    const { state, metrics, feed, modelName } = this.#options;
    const { stored } = metrics.events;
    stored.received++;
    const hasChanged = state.stored(this.#scope, keyOf(hash), MEDIUM, this.#attributes(tokenIds));
    stored[hasChanged ? 'applied' : 'repeated']++;
    const chunk = { hash, model: modelName, salt: '', tier: 'l1' as const };
    feed?.stored({ ...chunk, parentHash, tokenIds, tokenOffset: -1 });
  }

  #remove(hash: Uint8Array): void {
    const { state, metrics, feed, modelName } = this.#options;
    const { removed } = metrics.events;
    removed.received++;
    const hasChanged = state.removed(this.#scope, keyOf(hash), MEDIUM);
    removed[hasChanged ? 'applied' : 'repeated']++;
    feed?.removed({ hash, model: modelName, salt: '', tier: 'l1' });
  }

  #attributes({ length }: readonly number[]): ObjectAttributes {
    const blockSize = length === 0 ? null : length;
    return { ...NO_ATTRIBUTES, modelName: this.#options.modelName, blockSize };
  }

  #withdraw(): void {
    this.#options.state.cleared(this.#scope, 'invalidated');
    this.#options.feed?.removedAll();
  }
}

function keyOf(hash: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('hex'));
}
