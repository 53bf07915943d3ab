/**
 * Load event: how full one rank's KV cache is, as a worker tells its routers.
 *
 * envelope  as for router events, topic `kv_metrics`, with a publisher and numbers of its own
 * payload   one map, not a list: worker_id u64, dp_rank u32, active_decode_blocks u64|nil,
 *           active_prefill_tokens nil, kv_used_blocks u64|nil; nil is "unknown", 0 is "empty"
 *
 * Source  ai-dynamo/dynamo 1.6.1, WorkerMetricsPublisher; byte for byte the captures of load.jsonl.
 */
import { assertInvariant } from '../errors.ts';
import { EncodeBuffer } from '../kernel/encode-buffer.ts';
import type { PlaneMessage } from './envelope.ts';

export const KV_METRICS_TOPIC = 'kv_metrics';

const NIL = 0xc0;
const BIN8 = 0xc4;

export interface LoadEvent {
  readonly dpRank: number;
  /** 0 … 2^53 − 1, as are the blocks below; null: unknown. */
  readonly activeDecodeBlocks: number | null;
  readonly kvUsedBlocks: number | null;
}

/** Writes the load events of one worker, all ranks, and counts them. */
export class LoadEventEncoder {
  /** u64; null: unknown, and nothing can be encoded. */
  workerId: bigint | null;
  readonly #publisherId: number;
  readonly #buffer = new EncodeBuffer();
  #nextSequence = 0;

  /** `publisherId`: 1 … 2^53 − 1. */
  constructor(workerId: bigint | null, publisherId: number) {
    this.workerId = workerId;
    this.#publisherId = publisherId;
  }

  encode(event: LoadEvent, publishedAtMs: number): PlaneMessage {
    const sequence = this.#nextSequence++;
    const payload = this.#payload(event);
    const buffer = this.#start(5);
    this.#putNumber('publisher_id', this.#publisherId);
    this.#putNumber('sequence', sequence);
    this.#putNumber('published_at', publishedAtMs);
    buffer.putText('topic');
    buffer.putText(KV_METRICS_TOPIC);
    buffer.putText('payload');
    buffer.putByte(BIN8);
    buffer.putByte(payload.length);
    buffer.putBytes(payload);
    return { sequence, envelope: this.#copy(), eventCount: 1 };
  }

  /** At most 112 bytes: five names and as many numbers. */
  #payload({ dpRank, activeDecodeBlocks, kvUsedBlocks }: LoadEvent): Buffer {
    const buffer = this.#start(5);
    buffer.putText('worker_id');
    assertInvariant(this.workerId !== null, 'load of an unknown worker');
    buffer.putBigInt(this.workerId);
    this.#putNumber('dp_rank', dpRank);
    this.#putNumber('active_decode_blocks', activeDecodeBlocks);
    this.#putNumber('active_prefill_tokens', null);
    this.#putNumber('kv_used_blocks', kvUsedBlocks);
    return this.#copy();
  }

  #start(keyCount: number): EncodeBuffer {
    this.#buffer.reset();
    this.#buffer.putMapHeader(keyCount);
    return this.#buffer;
  }

  #putNumber(key: string, value: number | null): void {
    this.#buffer.putText(key);
    if (value === null) this.#buffer.putByte(NIL);
    else this.#buffer.putUnsigned(value);
  }

  #copy(): Buffer {
    return Buffer.from(this.#buffer.bytes(0, this.#buffer.length));
  }
}
