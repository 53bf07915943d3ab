/**
 * MessageWriter: cuts batches into messages and hands them to the plane.
 *
 * Message  at most 128 events and 8192 blocks; an event with more blocks travels alone.
 * Joined   under load, which is a turn of the event loop that brings many batches: what they publish shares
 *          messages until the turn ends. Otherwise each batch leaves at once, in messages of its own.
 * Closed   while the publisher has no worker, nothing is sent and nothing counted.
 * Failure  a message over the plane's limit is counted and skipped: its sequence number and its ids are
 *          spent, the messages behind it still go.
 * Source   ai-dynamo/dynamo 1.6.1, sinks.rs; routers take the events of a message one by one.
 */
import type { RelayMetrics } from '../metrics/relay-metrics.ts';
import { messageEnds, type PlaneMessage } from '../protocol/envelope.ts';
import type { PlacementBatch, PlacementEvent } from '../protocol/placement-event.ts';
import type { Publisher } from '../protocol/publisher.ts';
import type { RouterBatch } from '../protocol/router-event.ts';
import type { RouterEventSink } from './sink.ts';

/** A turn that brings more is loaded: several steps of an engine have piled up. */
const MAX_UNLOADED_BATCHES = 8;

export interface MessageWriterOptions {
  readonly publisher: Publisher;
  /** Bytes that messages are cut to; without it, only events and blocks are counted. */
  readonly maxMessageBytes?: () => number;
  /** Told about a message that no plane will take; the owner bounds what it says of it. */
  readonly onTooLarge?: (messageBytes: number, maxMessageBytes: number) => void;
  /** Calls back when the turn of the event loop ends; absent: nothing is joined. */
  readonly atTurnEnd?: (callback: () => void) => void;
}

export class MessageWriter {
  readonly #sink: RouterEventSink;
  readonly #metrics: RelayMetrics;
  readonly #options: MessageWriterOptions;
  #turnBatches = 0;
  /** The last turn was. */
  #isLoaded = false;
  /** Arrival of the first event of the open message. */
  #openSinceMs = 0;

  constructor(sink: RouterEventSink, metrics: RelayMetrics, options: MessageWriterOptions) {
    this.#sink = sink;
    this.#metrics = metrics;
    this.#options = options;
  }

  write(batch: RouterBatch): void {
    const { publisher, maxMessageBytes } = this.#options;
    if (!publisher.isOpen) return;
    if (this.#isLoadedTurn() && this.#join(batch)) return;
    this.flush();
    let first = 0;
    for (const end of messageEnds(batch, maxMessageBytes?.())) {
      if (this.#send(publisher.envelopes.encode(batch, first, end, Date.now()))) {
        this.#countMessage(batch.events, first, end);
      }
      first = end;
    }
  }

  /** Sends what has been joined. */
  flush(): void {
    const { envelopes } = this.#options.publisher;
    if (envelopes.openEvents === 0) return;
    this.#send(envelopes.close(Date.now()));
    this.#observe(this.#openSinceMs);
  }

  /** Whether batches of this turn are joined, with the one that is written now. */
  #isLoadedTurn(): boolean {
    const { atTurnEnd } = this.#options;
    if (atTurnEnd === undefined) return false;
    if (this.#turnBatches++ === 0) {
      atTurnEnd(() => {
        this.flush();
        this.#isLoaded = this.#turnBatches > MAX_UNLOADED_BATCHES;
        this.#turnBatches = 0;
      });
    }
    return this.#isLoaded || this.#turnBatches > MAX_UNLOADED_BATCHES;
  }

  /** False where the batch needs a message of its own, or several. */
  #join(batch: RouterBatch): boolean {
    const { events } = batch;
    const { arrivedAtMs, isHeartbeat } = events[0] as PlacementEvent;
    if (isHeartbeat) return false;
    const { publisher, maxMessageBytes } = this.#options;
    const { envelopes } = publisher;
    const maxBytes = maxMessageBytes?.() ?? Number.POSITIVE_INFINITY;
    if (!envelopes.append(batch, maxBytes)) {
      this.flush();
      if (!envelopes.append(batch, maxBytes)) return false;
    }
    if (envelopes.openEvents === events.length) this.#openSinceMs = arrivedAtMs;
    this.#count(events, 0, events.length);
    return true;
  }

  /** True where the plane took it. */
  #send(message: PlaneMessage): boolean {
    const { length } = message.envelope;
    const { maxMessageBytes } = this.#sink;
    if (length > maxMessageBytes) {
      this.#metrics.publishFailures.payload_too_large++;
      this.#options.onTooLarge?.(length, maxMessageBytes);
      return false;
    }
    this.#sink.publish(message);
    this.#metrics.publishedMessages++;
    this.#metrics.publishedBytes += length;
    return true;
  }

  #countMessage(events: PlacementBatch, first: number, end: number): void {
    const { arrivedAtMs, isHeartbeat } = events[first] as PlacementEvent;
    if (isHeartbeat) {
      // Alone in its message, and no engine event: neither a change nor a latency.
      this.#metrics.heartbeats++;
      return;
    }
    this.#count(events, first, end);
    this.#observe(arrivedAtMs);
  }

  #count(events: PlacementBatch, first: number, end: number): void {
    const { publishedEvents, publishedBlocks } = this.#metrics;
    // Events of one kind come in runs, which are counted as a whole.
    for (let index = first; index < end; ) {
      const { type } = events[index] as PlacementEvent;
      const start = index;
      let blocks = 0;
      for (; index < end && (events[index] as PlacementEvent).type === type; index++) {
        blocks += (events[index] as PlacementEvent).blockCount;
      }
      publishedEvents[type] += index - start;
      publishedBlocks[type] += blocks;
    }
  }

  #observe(arrivedAtMs: number): void {
    this.#metrics.relayLatencySeconds.observe((performance.now() - arrivedAtMs) / 1000);
  }
}
