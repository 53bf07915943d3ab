/**
 * Coalescer: merges adjacent compatible placement events into fewer, larger ones.
 *
 * In/out   placement events in engine order; the same mutations leave in the same order.
 * Merges   same tier, dp rank, kind and session; a store only if its parent is the pending tail block.
 * Flushes  on any other event, at maxBatchBlocks (checked after a whole event), on cleared, on flush().
 * Owns     no ids, timers or I/O; push() takes ownership of its event; what is pending after the native
 *          batch is kept by keepPending(). Never throws.
 * Source   ai-dynamo/dynamo 1.6.1, lib/llm/src/kv_router/publisher/batching.rs. A pending store without
 *          blocks takes in any root store, under its own parent, as there.
 */
import { KeptBlock } from '../kernel/u64-list.ts';
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import type { MmInfo } from '../protocol/multimodal.ts';
import type { PlacementEvent } from '../protocol/placement-event.ts';
import type { Stage } from '../stage.ts';

export interface CoalescerOptions {
  /** Cap of a merged event, checked after each whole event. */
  readonly maxBatchBlocks: number;
  /** Root stores of 2 blocks or more may be reports of what is held, so nothing joins them. */
  readonly fullReports?: boolean;
}

export class Coalescer implements Stage<PlacementEvent, PlacementEvent> {
  readonly #options: CoalescerOptions;
  readonly #metrics: RelayMetrics;
  #pending: PlacementEvent | null = null;
  readonly #keptBlockHashes = new KeptBlock();
  readonly #keptTokensHashes = new KeptBlock();

  constructor(options: CoalescerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
  }

  get hasPending(): boolean {
    return this.#pending !== null;
  }

  /** Appends what `event` completes to `out`, oldest first: up to 2 events, more of removes read as one. */
  push(event: PlacementEvent, out: PlacementEvent[]): void {
    if (event.eventCount > 1) {
      this.#pushRun(event, out);
      return;
    }
    const { maxBatchBlocks } = this.#options;
    if (this.#pending !== null && this.#continues(this.#pending, event)) {
      merge(this.#pending, event);
      this.#metrics.coalescedEvents++;
      if (this.#pending.blockCount >= maxBatchBlocks) this.flush(out);
      return;
    }
    this.flush(out);
    // A barrier or an already full event gains nothing by waiting.
    if (event.type === 'cleared' || event.blockCount >= maxBatchBlocks) out.push(event);
    else this.#pending = event;
  }

  flush(out: PlacementEvent[]): void {
    if (this.#pending !== null) out.push(this.#pending);
    this.#pending = null;
  }

  /**
   * Lets the pending event outlive its native batch. Call it once everything flushed before has been
   * encoded: the memory is that of the event kept before.
   */
  keepPending(): void {
    if (this.#pending === null) return;
    const { blockHashes, tokensHashes } = this.#pending;
    if (blockHashes.isKept && tokensHashes?.isKept !== false) return;
    this.#pending = this.#pending.withLists(
      this.#keptBlockHashes.hold(blockHashes),
      tokensHashes === null ? null : this.#keptTokensHashes.hold(tokensHashes),
    );
  }

  /** Removes that were read as one come to what they would one by one: the cap may cut them anywhere. */
  #pushRun(run: PlacementEvent, out: PlacementEvent[]): void {
    const { maxBatchBlocks } = this.#options;
    this.#metrics.coalescedEvents += run.eventCount;
    let rest: PlacementEvent | null = run;
    while (rest !== null) {
      if (this.#pending !== null && !isContinuation(this.#pending, rest)) this.flush(out);
      const pending: PlacementEvent | null = this.#pending;
      const part: PlacementEvent = rest;
      const roomBlocks = Math.max(maxBatchBlocks - (pending?.blockCount ?? 0), 1);
      rest = part.blockCount > roomBlocks ? part.cutAt(roomBlocks) : null;
      if (pending === null) {
        this.#pending = part;
        this.#metrics.coalescedEvents--;
      } else {
        merge(pending, part);
      }
      const { blockCount } = pending ?? part;
      if (blockCount >= maxBatchBlocks) this.flush(out);
    }
  }

  #continues(pending: PlacementEvent, next: PlacementEvent): boolean {
    const mayBeReport = this.#options.fullReports === true && pending.mayBeFullReport;
    return !mayBeReport && isContinuation(pending, next);
  }

  free(): void {
    this.#keptBlockHashes.free();
    this.#keptTokensHashes.free();
  }
}

function isContinuation(pending: PlacementEvent, next: PlacementEvent): boolean {
  return (
    pending.type === next.type &&
    pending.storageTier === next.storageTier &&
    pending.dpRank === next.dpRank &&
    pending.sessionId === next.sessionId &&
    (pending.type !== 'stored' || extendsChain(pending, next))
  );
}

/** Whether the parent of `next` is the last block of `pending`; no parent equals no block. */
function extendsChain(pending: PlacementEvent, next: PlacementEvent): boolean {
  const last = pending.blockHashes.length - 1;
  if (!next.hasParent || last < 0) return !next.hasParent && last < 0;
  return (
    pending.blockHashes.lowAt(last) === next.parentLow &&
    pending.blockHashes.highAt(last) === next.parentHigh
  );
}

function merge(pending: PlacementEvent, next: PlacementEvent): void {
  if (pending.mmInfos !== null || next.mmInfos !== null) {
    pending.mmInfos = [...mmInfosOf(pending), ...mmInfosOf(next)];
  }
  pending.blockHashes.append(next.blockHashes);
  if (next.tokensHashes !== null) pending.tokensHashes?.append(next.tokensHashes);
}

function mmInfosOf(event: PlacementEvent): readonly (MmInfo | null)[] {
  return event.mmInfos ?? new Array<null>(event.blockCount).fill(null);
}
