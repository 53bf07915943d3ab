/**
 * Normalizer: native batches to placement events that routers can use.
 *
 * In/out   one engine message → its accepted events in order, each with the next raw event id.
 * Owns     the raw id counter (from 0; filtered events take none), and the filter's state.
 * Never    throws; an event that cannot be used is counted and left out.
 * Source   ai-dynamo/dynamo 1.6.1, zmq_listener.rs.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import {
  EVENT_FAULTS,
  type EventFault,
  type NativeBatch,
  type RawEvent,
  type RawEventType,
} from '../protocol/native-batch.ts';
import type { PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';
import type { RankCleared } from '../protocol/rank-cleared.ts';
import { Converter, type ConverterOptions, type EventContext } from './converter.ts';
import { EventFilter } from './event-filter.ts';
import { hasUnknownExtraKey } from './extra-key-texts.ts';
import { mediumLabel } from './media.ts';

/** Told about stores that hold nothing a router can use; the owner bounds what it says of it. */
export type UnusableStoreWarning = (event: { readonly blockSize: number }) => void;

export interface NormalizerOptions extends ConverterOptions {
  readonly onUnusableStore?: UnusableStoreWarning;
  readonly onDroppedEvents?: (reason: EventFault, count: number) => void;
}

export class Normalizer {
  readonly #options: NormalizerOptions;
  readonly #metrics: RelayMetrics;
  readonly #filter: EventFilter;
  readonly #converter: Converter;
  /** One for all events, which would otherwise leave one each to the garbage collector. */
  readonly #context: EventContext = {
    dpRank: 0,
    storageTier: 'device',
    namespace: null,
    arrivedAtMs: 0,
  };
  #nextRawEventId = 0;
  /** Events of one kind come in runs, which are counted as a whole. */
  #runType: RawEventType = 'stored';
  #runMedium: string | null = null;
  #runLength = 0;
  #runFiltered = 0;

  constructor(options: NormalizerOptions, metrics: RelayMetrics) {
    this.#options = options;
    this.#metrics = metrics;
    this.#filter = new EventFilter(options.compat);
    this.#converter = new Converter(options);
  }

  normalize(batch: NativeBatch): PlacementBatch {
    const dpRank = batch.dpRank ?? 0;
    const out: PlacementBatch = [];
    this.#countDropped(batch);
    if (batch.isEngineUnsupported) this.#metrics.isEngineUnsupported = true;
    for (const event of batch.events) this.#accept(dpRank, event, batch.arrivedAtMs, out);
    this.#countRun();
    return out;
  }

  /** A clear that no engine has sent; behind a restart what was learned of the engine goes as well. */
  clear({ dpRank, cause, atMs }: RankCleared): PlacementBatch {
    this.#filter.forgetRank(dpRank, cause === 'restart');
    this.#metrics.noteClear(cause);
    const cleared = this.#converter.clear(dpRank, atMs);
    cleared.rawEventId = this.#nextRawEventId++;
    return [cleared];
  }

  /** Told by reference counting when no copy of these blocks is left. */
  noteLastCopyGone(removed: PlacementEvent): void {
    this.#filter.noteLastCopyGone(removed);
  }

  free(): void {
    this.#filter.free();
    this.#converter.free();
  }

  #countDropped({ dropped }: NativeBatch): void {
    if (dropped === null) return;
    for (const reason of EVENT_FAULTS) {
      const count = dropped.byReason[reason];
      this.#metrics.droppedEngineEvents[reason] += count;
      if (count > 0) this.#options.onDroppedEvents?.(reason, count);
    }
    this.#metrics.droppedRemovals += dropped.removals;
  }

  /** Appends what is made of `event`, numbered: nothing where it is filtered. */
  #accept(dpRank: number, event: RawEvent, arrivedAtMs: number, out: PlacementBatch): void {
    const metrics = this.#metrics;
    const filter = this.#filter;
    if (event.type !== this.#runType || event.medium !== this.#runMedium) {
      this.#countRun();
      this.#runType = event.type;
      this.#runMedium = event.medium;
    }
    this.#runLength += event.eventCount;
    const reason = metrics.isEngineUnsupported
      ? 'engine_unsupported'
      : filter.rejection(dpRank, event, this.#nextRawEventId);
    if (reason !== null) {
      metrics.filtered[event.type][reason] += event.eventCount;
      this.#runFiltered += event.eventCount;
      return;
    }
    if (event.type === 'stored') this.#countIgnoredFields(event);
    const context = this.#context;
    context.dpRank = dpRank;
    context.storageTier = filter.storageTier;
    context.namespace = filter.namespace;
    context.arrivedAtMs = arrivedAtMs;
    const first = out.length;
    this.#converter.convert(event, context, out);
    for (let index = first; index < out.length; index++) {
      this.#note(event, out[index] as PlacementEvent);
    }
  }

  #note(event: RawEvent, placement: PlacementEvent): void {
    placement.rawEventId = this.#nextRawEventId;
    this.#nextRawEventId += placement.eventCount;
    if (placement.type === 'stored') this.#noteBlockSize(event, placement.blockCount);
    if (placement.type === 'cleared') this.#metrics.noteClear('engine');
  }

  #countRun(): void {
    const type = this.#runType;
    const length = this.#runLength;
    if (length === 0) return;
    this.#metrics.received[type] += length;
    this.#metrics.engineEvents[type][mediumLabel(this.#runMedium)] += length;
    this.#metrics.accepted[type] += length - this.#runFiltered;
    this.#runLength = 0;
    this.#runFiltered = 0;
  }

  #noteBlockSize(event: RawEvent, blockCount: number): void {
    const metrics = this.#metrics;
    metrics.noteBlockSize(event.blockSize);
    if (blockCount > 0) {
      metrics.usableStores++;
      return;
    }
    metrics.emptyStores++;
    const { blockSize } = this.#options;
    if (event.blockSize > 0 && event.blockSize !== blockSize) metrics.wrongSizeStores++;
    this.#options.onUnusableStore?.(event);
  }

  #countIgnoredFields(event: RawEvent): void {
    const { ignoredFields } = this.#metrics;
    if (event.hasLoraId && !event.loraName) ignoredFields.lora_id_without_name++;
    if (event.extraKeys !== null && hasUnknownExtraKey(event.extraKeys, event.loraName)) {
      ignoredFields.unknown_extra_key++;
    }
  }
}
