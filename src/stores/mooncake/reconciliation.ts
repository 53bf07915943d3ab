/**
 * Reconciliation: one comparison of what is held with what the master holds.
 *
 * Asks     for every key that is held, then for every listed one that was not asked for, chunk by chunk. The
 *          list alone decides nothing: a key may have come or gone since, or be held by now for an event
 *          that tells of one medium alone.
 * Answers  are adopted while messages wait; those are applied behind them. So the last word on each key
 *          is an event, or an answer that no event followed.
 * Cannot   be asked: keys with a comma or a line feed. They are given up where what is held is suspect,
 *          and left alone else. Listed keys longer than those of events are counted as not held.
 * Pace     at most `keysPerSecond`, chunks one after the other.
 * Throws   MasterError; SupersededError where the run has become pointless.
 */
import { MAX_KEY_BYTES } from '../../engines/mooncake/event-reader.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import type { HeldScope } from '../objects/object-scopes.ts';
import type { ObjectState } from '../objects/object-state.ts';
import type { StoreClock } from '../store-clock.ts';
import { isAskable, type KeyList } from './key-list.ts';
import { type Master, MasterError } from './master.ts';
import type { MooncakeView } from './mooncake-view.ts';

const MAX_CHUNK_KEYS = 500;
/** Of the keys as a request spells them: servers and proxies take 16 KiB of it, or little more. */
const MAX_CHUNK_BYTES = 8 << 10;
/** Holds that break before the run is given up. */
const MAX_BROKEN_HOLDS = 3;
/** Failed attempts of one question that end the run, and the pause between them. */
const MAX_FAILURES = 3;
const RETRY_MS = 500;
/** Entries or listed keys that are looked at in one turn of the event loop. */
const MAX_TURN_KEYS = 20_000;

/** What the run was about is not there any more. */
export class SupersededError extends Error {}

export interface ReconciliationDeps {
  readonly state: ObjectState;
  readonly view: MooncakeView;
  readonly master: Master;
  readonly metrics: SourceMetrics;
  readonly clock: StoreClock;
  readonly keysPerSecond: number;
  /** Counts the runs of this state. */
  readonly runNumber: number;
  /** Whether keys that cannot be asked for are given up. */
  readonly givesUp: boolean;
  readonly isStopped: () => boolean;
}

export class Reconciliation {
  readonly #deps: ReconciliationDeps;
  readonly #backendId: string;
  /** Another one than that of the run before. */
  readonly #mark: number;
  #brokenHolds = 0;

  constructor(deps: ReconciliationDeps) {
    this.#deps = deps;
    this.#backendId = deps.view.askedScope.backendId;
    this.#mark = (deps.runNumber % 255) + 1;
  }

  async run(): Promise<void> {
    const list = await this.#deps.master.list();
    await this.#askHeld();
    await this.#askListed(list);
    this.#checkWanted();
  }

  async #askHeld(): Promise<void> {
    for (let entry = 0; ; ) {
      this.#checkWanted();
      const scope = this.#scope();
      if (scope === null || entry >= scope.table.entryEnd) return;
      const chunk = new Chunk();
      const turnEnd = Math.min(scope.table.entryEnd, entry + MAX_TURN_KEYS);
      for (; entry < turnEnd; entry++) {
        if (scope.table.media(entry) === 0) continue;
        const key = scope.table.key(entry);
        if (!isAskable(key)) {
          if (this.#deps.givesUp) this.#deps.state.adopt(scope, key, [], 'invalidated');
        } else if (!chunk.push(key.slice())) {
          break;
        }
      }
      await this.#ask(chunk);
    }
  }

  async #askListed(list: KeyList): Promise<void> {
    let chunk = new Chunk();
    let looked = 0;
    for (const key of list.keys()) {
      const isWanted = this.#isListable(key) && !this.#wasAsked(key);
      const hasRoom = !isWanted || chunk.push(key);
      if (hasRoom && ++looked < MAX_TURN_KEYS) continue;
      await this.#ask(chunk);
      chunk = new Chunk();
      if (!hasRoom) chunk.push(key);
      looked = 0;
    }
    await this.#ask(chunk);
  }

  #isListable(key: Uint8Array): boolean {
    if (key.length <= MAX_KEY_BYTES) return isAskable(key);
    this.#deps.state.untrackedObjects++;
    return false;
  }

  async #ask({ keys }: Chunk): Promise<void> {
    if (keys.length === 0) {
      await this.#sleep(0);
      return;
    }
    const { view, master, clock, keysPerSecond } = this.#deps;
    const startMs = clock.nowMs();
    let failures = 0;
    for (let isAnswered = false; !isAnswered; ) {
      this.#checkWanted();
      view.hold();
      try {
        isAnswered = this.#take(keys, await master.query(keys));
      } catch (error) {
        // A run has come too far to begin anew for one question that was late.
        if (!(error instanceof MasterError) || ++failures === MAX_FAILURES) throw error;
      } finally {
        view.release();
      }
      if (!isAnswered && failures > 0) await this.#sleep(RETRY_MS);
    }
    await this.#sleep((keys.length / keysPerSecond) * 1000 - (clock.nowMs() - startMs));
  }

  /** False where the hold was broken: events that belong behind the answer have been applied. */
  #take(keys: readonly Uint8Array[], answers: readonly (readonly string[])[]): boolean {
    const { state, view, metrics } = this.#deps;
    this.#checkWanted();
    if (!view.isHolding) {
      if (++this.#brokenHolds < MAX_BROKEN_HOLDS) return false;
      throw new SupersededError('events came faster than answers');
    }
    for (const [index, key] of keys.entries()) {
      const media = answers[index] as readonly string[];
      if (state.adopt(view.askedScope, key, media, 'reconciled')) metrics.correctedObjects++;
      this.#markAsked(key);
    }
    metrics.askedKeys += keys.length;
    return true;
  }

  /** Objects that were asked for are marked; one that goes and comes again is not. */
  #wasAsked(key: Uint8Array): boolean {
    const table = this.#scope()?.table;
    const entry = table?.find(key) ?? -1;
    return entry >= 0 && table?.mark(entry) === this.#mark;
  }

  #markAsked(key: Uint8Array): void {
    const table = this.#scope()?.table;
    const entry = table?.find(key) ?? -1;
    if (entry >= 0) table?.setMark(entry, this.#mark);
  }

  #scope(): HeldScope | null {
    return this.#deps.state.scope(this.#deps.view.askedScope);
  }

  #checkWanted(): void {
    if (this.#deps.isStopped()) throw new SupersededError('the source stops');
    if (this.#deps.view.askedScope.backendId !== this.#backendId)
      throw new SupersededError('the backend has another name');
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#deps.clock.schedule(resolve, Math.max(0, delayMs));
    });
  }
}

/** What percent-encoding makes of it. */
function spelledBytes(key: Uint8Array): number {
  let bytes = 0;
  for (const byte of key) bytes += isUnreserved(byte) ? 1 : 3;
  return bytes;
}

function isUnreserved(byte: number): boolean {
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  return (
    isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2e || byte === 0x5f
  );
}

class Chunk {
  readonly keys: Uint8Array[] = [];
  #bytes = 0;

  /** False, and the key not taken, where there is no room; the first key finds some. */
  push(key: Uint8Array): boolean {
    const bytes = spelledBytes(key) + 1;
    const isFull = this.keys.length === MAX_CHUNK_KEYS || this.#bytes + bytes > MAX_CHUNK_BYTES;
    if (isFull && this.keys.length > 0) return false;
    this.keys.push(key);
    this.#bytes += bytes;
    return true;
  }
}
