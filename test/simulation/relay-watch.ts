/**
 * RelayWatch: what one rank's relay does that shows nowhere at rest: how it counts, how long it holds
 * messages back, what it has removed and when.
 */
import type { TierOfRank } from '../../src/indexer/block-index.ts';
import type { PlaneMessage } from '../../src/protocol/envelope.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import type { Relay } from '../../src/relay.ts';
import { type HeldRow, type ModelEvent, RouterIndexModel } from '../support/router-index-model.ts';
import { type BlockKey, blockKey } from './block-counts.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Longest that output may wait for answers. */
const MAX_HOLD_MS = 2000;

export class RelayWatch {
  readonly relay: Relay;
  readonly #clock: VirtualClock;
  readonly #complaints = new Set<string>();
  /** When each block that is gone was removed or cleared. */
  readonly #removedMs = new Map<BlockKey, number>();
  readonly #keys = new Set<BlockKey>();
  readonly #router = new RouterIndexModel();
  /** When each message that waits was published. */
  readonly #waiting = new Map<PlaneMessage, number>();
  #lastEventId = 0;
  /** Output has waited for an answer. */
  hasHeld = false;

  constructor(relay: Relay, clock: VirtualClock, onSuperseded: () => void) {
    this.relay = relay;
    this.#clock = clock;
    this.#watchIndex();
    this.#watchDumps();
    this.#watchOutput();
    const open = relay.openPublisher.bind(relay);
    relay.openPublisher = (workerId): void => {
      const before = relay.publisherId;
      open(workerId);
      this.#lastEventId = 0;
      this.#waiting.clear();
      if (relay.publisherId === before) this.#complain('a new source has the old publisher id');
      onSuperseded();
    };
  }

  /** What has been wrong so far. */
  get complaints(): string[] {
    const nowMs = this.#clock.nowMs();
    for (const sinceMs of this.#waiting.values()) this.#checkHold(nowMs - sinceMs);
    return [...this.#complaints];
  }

  /** All that has been stored and not removed, whatever a router's tree makes of it. */
  get keys(): BlockKey[] {
    return [...this.#keys];
  }

  /** What a router has that got all that was published. */
  rows(): HeldRow[] {
    return this.#router.rows();
  }

  /** Since when the block is gone; null where it is not. */
  removedMs(key: BlockKey): number | null {
    return this.#keys.has(key) ? null : (this.#removedMs.get(key) ?? 0);
  }

  #watchIndex(): void {
    const { indexer } = this.relay;
    if (indexer === null) return;
    const record = indexer.record.bind(indexer);
    indexer.record = (batch): void => {
      const { firstEventId, events } = batch;
      if (firstEventId !== this.#lastEventId + 1) {
        this.#complain(`event ${firstEventId} behind event ${this.#lastEventId}`);
      }
      this.#lastEventId = firstEventId + events.length - 1;
      for (const event of events) {
        const { type, storageTier, blockHashes } = event;
        this.#router.apply(modelEvent(event));
        if (type === 'cleared') for (const key of this.#keys) this.#remove(key);
        for (const hash of blockHashes.toBigInts()) {
          const key = blockKey(storageTier, hash);
          if (type === 'stored') this.#keys.add(key);
          else this.#remove(key);
        }
      }
      record(batch);
    };
  }

  /** A dump that goes on where another one has begun meanwhile has lost its place in the tiers. */
  #watchDumps(): void {
    const blocks = this.relay.indexer?.blocks;
    if (blocks === undefined) return;
    const accessors: object = Object.getPrototypeOf(blocks) as object;
    let dumps = 0;
    Object.defineProperty(blocks, 'tiers', {
      get: (): TierOfRank[] => {
        const dump = ++dumps;
        return (Reflect.get(accessors, 'tiers', blocks) as TierOfRank[]).map((one) => ({
          ...one,
          tier: new Proxy(one.tier, {
            get: (tier, name) => {
              if (dump !== dumps) this.#complain('two dumps at a time');
              const value = Reflect.get(tier, name) as unknown;
              return typeof value === 'function' ? value.bind(tier) : value;
            },
          }),
        }));
      },
    });
  }

  #remove(key: BlockKey): void {
    if (this.#keys.delete(key)) this.#removedMs.set(key, this.#clock.nowMs());
  }

  #watchOutput(): void {
    const { hold, plane } = this.relay;
    const publish = hold.publish.bind(hold);
    const pass = plane.publish.bind(plane);
    hold.publish = (message): void => {
      this.#waiting.set(message, this.#clock.nowMs());
      publish(message);
      if (this.#waiting.has(message)) this.hasHeld = true;
    };
    plane.publish = (message): void => {
      this.#checkHold(this.#clock.nowMs() - (this.#waiting.get(message) ?? 0));
      this.#waiting.delete(message);
      pass(message);
    };
  }

  #checkHold(heldMs: number): void {
    if (heldMs > MAX_HOLD_MS + 1) this.#complain(`output has waited ${Math.round(heldMs)} ms`);
  }

  #complain(text: string): void {
    this.#complaints.add(`rank ${this.relay.dpRank}: ${text}`);
  }
}

function modelEvent(event: PlacementEvent): ModelEvent {
  const { type, storageTier: tier, blockHashes, tokensHashes } = event;
  if (type === 'cleared') return { type };
  const hashes = blockHashes.toBigInts();
  if (type === 'removed') return { type, tier, hashes };
  const tokens = tokensHashes?.toBigInts() ?? [];
  const blocks = hashes.map((blockHash, at) => ({ blockHash, tokensHash: tokens[at] ?? 0n }));
  return { type, tier, parent: parentOf(event), blocks };
}

function parentOf({ hasParent, parentLow, parentHigh }: PlacementEvent): bigint | null {
  if (!hasParent) return null;
  return (BigInt(parentHigh >>> 0) << 32n) | BigInt(parentLow >>> 0);
}
