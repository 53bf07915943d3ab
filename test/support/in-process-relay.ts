/** A relay without sockets: frames in, plane messages out, on a clock that the test turns. */
import { Subject, VirtualTimeScheduler } from 'rxjs';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { LocalIndexer } from '../../src/indexer/local-indexer.ts';
import { arena } from '../../src/kernel/arena.ts';
import { readFrames } from '../../src/listener/frames.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { type PipelineConfig, type PlacementSource, pipeline } from '../../src/pipeline.ts';
import type { Compat } from '../../src/protocol/compat.ts';
import type { NativeBatch } from '../../src/protocol/native-batch.ts';
import { MemorySink } from '../../src/sinks/memory.ts';
import { decodeEnvelope, type PublishedMessage } from './scenarios.ts';

export class InProcessRelay {
  readonly metrics: RelayMetrics = new RelayMetrics();
  readonly indexer: LocalIndexer;
  readonly #sink: MemorySink;
  readonly #native$ = new Subject<NativeBatch>();
  readonly #reader: BatchReader;
  readonly #compat: Compat;
  readonly #scheduler = new VirtualTimeScheduler();

  constructor(
    config: PipelineConfig,
    maxMessageBytes?: number,
    engine: 'vllm' | 'sglang' | 'trtllm' = 'vllm',
    placements: PlacementSource | null = null,
  ) {
    this.#compat = config.compat;
    this.#reader = new BatchReader({ compat: config.compat, engine });
    this.#sink = new MemorySink(maxMessageBytes);
    this.#scheduler.maxFrames = 0;
    const bounds = { maxBlocks: 8_000_000, maxEvents: 1024, maxBytes: 1 << 20 };
    this.indexer = new LocalIndexer({ publisher: config.publisher, ...bounds }, this.metrics);
    pipeline(this.#native$, {
      config,
      indexer: this.indexer,
      sink: this.#sink,
      metrics: this.metrics,
      placements,
      clock: { scheduler: this.#scheduler, nowMs: () => this.#scheduler.now() },
    }).subscribe();
  }

  /** Lets `ms` pass; deadlines on the way fire at their time. */
  advance(ms: number): void {
    this.#scheduler.maxFrames = this.#scheduler.frame + ms;
    const end = this.#scheduler.schedule(() => undefined, ms);
    this.#scheduler.flush();
    end.unsubscribe();
  }

  push(frames: readonly Uint8Array[]): void {
    const message = readFrames(frames, this.#compat);
    if (typeof message === 'string') {
      this.metrics.malformed[message]++;
      return;
    }
    arena.reset();
    const batch = this.#reader.read(message.payload, this.#scheduler.now());
    if (typeof batch === 'string') this.metrics.malformed[batch]++;
    else this.#native$.next(batch);
  }

  stop(): void {
    this.#native$.complete();
  }

  /** Size of each message as it leaves. */
  get envelopeBytes(): number[] {
    return this.#sink.messages.map((message) => message.envelope.length);
  }

  get published(): PublishedMessage[] {
    return this.#sink.messages.map((message) => decodeEnvelope(message.envelope));
  }
}

export function framesOf(hex: readonly string[]): Buffer[] {
  return hex.map((frame) => Buffer.from(frame, 'hex'));
}
