/**
 * kvrelay as a library: a whole worker, the pure stages with their operators, the codecs and hashes.
 *
 * Lists    events hold packed lists that live until the next payload is read; call `arena.reset()`
 *          before each `BatchReader.read()`, once nothing needs the batch before it.
 */
export { type CoalesceOptions, coalesce } from './batching/coalesce.ts';
export { Coalescer } from './batching/coalescer.ts';
export { type ConfigSources, loadConfig } from './config/load-config.ts';
export type { WorkerConfig } from './config/worker-config.ts';
export { RefcountDedup } from './dedup/refcount-dedup.ts';
export { BatchReader } from './engines/batch-reader.ts';
export { ConfigError, KvRelayError, PayloadTooLargeError } from './errors.ts';
export type { PadTokenIds } from './hashing/pad-tokens.ts';
export {
  hashSeed,
  namespaceDigest,
  type TokensHashInput,
  tokensHashes,
  wholeBlocks,
} from './hashing/tokens-hash.ts';
export { index } from './indexer/index-events.ts';
export { LocalIndexer, type LocalIndexerOptions } from './indexer/local-indexer.ts';
export { arena } from './kernel/arena.ts';
export { kernelBytesTaken } from './kernel/kernel.ts';
export { TokenList } from './kernel/token-list.ts';
export { U64List } from './kernel/u64-list.ts';
export { type EngineMessage, type FrameFault, readFrames } from './listener/frames.ts';
export { Sequencer, type SequencerOptions } from './listener/sequencer.ts';
export type { SequencerAction } from './listener/sequencer-action.ts';
export { EngineBindError } from './listener/zmq-engine-socket.ts';
export { createLogger, type Logger, type LogOptions } from './log.ts';
export { RelayMetrics } from './metrics/relay-metrics.ts';
export { type PipelineConfig, type PipelineDeps, pipeline } from './pipeline.ts';
export { detectGaps } from './processor/detect-gaps.ts';
export { normalize } from './processor/normalize.ts';
export { Normalizer, type NormalizerOptions } from './processor/normalizer.ts';
export { type NumberEventsOptions, numberEvents } from './processor/number-events.ts';
export { EnvelopeEncoder, messageEnds, type PlaneMessage } from './protocol/envelope.ts';
export type { MessageRoom } from './protocol/message-slab.ts';
export type { MmInfo } from './protocol/multimodal.ts';
export type { BatchFault, NativeBatch } from './protocol/native-batch.ts';
export {
  type ExtraKey,
  type Locality,
  RawEvent,
  type RawEventType,
} from './protocol/native-batch.ts';
export {
  type PlacementBatch,
  PlacementEvent,
  type PlacementEventType,
} from './protocol/placement-event.ts';
export { Publisher, type PublisherOptions } from './protocol/publisher.ts';
export { type OwnClearCause, RankCleared } from './protocol/rank-cleared.ts';
export { type RouterBatch, RouterEventEncoder } from './protocol/router-event.ts';
export { STORAGE_TIERS, type StorageTier } from './protocol/storage-tier.ts';
export { EtcdMissingError } from './router/discovery/etcd-client.ts';
export { MemorySink } from './sinks/memory.ts';
export { type PublishOptions, publish } from './sinks/publish.ts';
export type { RouterEventSink } from './sinks/sink.ts';
export { PlaneBindError } from './sinks/zmq.ts';
export { runStage, type Stage } from './stage.ts';
export { VERSION } from './version.ts';
export { createWorker, type Worker, type WorkerDeps } from './worker.ts';
