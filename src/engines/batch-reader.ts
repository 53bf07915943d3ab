/**
 * BatchReader: one engine payload to a native batch.
 *
 * In/out   MessagePack [time, events, data_parallel_rank]; bytes behind it are not looked at.
 * Rejects  all or nothing: one bad event costs the batch (`strict`).
 * Owns     a copy of the payload in kernel memory; the batch's lists live until the next read.
 * Throws   never; a payload that is no batch is a BatchFault.
 * Source   ai-dynamo/dynamo 1.6.1, lib/llm/src/kv_router/publisher/zmq_listener.rs.
 */
import { KernelMemoryError } from '../kernel/kernel.ts';
import type { BatchFault, NativeBatch, RawEvent } from '../protocol/native-batch.ts';
import { BAD_FIELD, DAMAGED, DecodeFault } from './decode-fault.ts';
import { readArrayEvent } from './event-array.ts';
import { readMapEvent } from './event-map.ts';
import { MsgpackReader } from './msgpack-reader.ts';

const BATCH_ELEMENTS = 3;
const MAX_RANK = 2 ** 31 - 1;
const MIN_RANK = -(2 ** 31);

export class BatchReader {
  readonly #reader: MsgpackReader = new MsgpackReader();

  read(payload: Uint8Array, arrivedAtMs: number): NativeBatch | BatchFault {
    const reader = this.#reader;
    try {
      reader.open(payload);
      if (reader.openArray() !== BATCH_ELEMENTS) return 'batch_shape';
      reader.skipNumber();
      const events = readEvents(reader);
      return { dpRank: readRank(reader), events, arrivedAtMs };
    } catch (error) {
      if (error === DAMAGED) return 'msgpack';
      if (error instanceof DecodeFault) return 'batch_shape';
      if (error instanceof KernelMemoryError) return 'oversize';
      throw error;
    } finally {
      reader.close();
    }
  }
}

function readEvents(reader: MsgpackReader): RawEvent[] {
  const count = reader.openArray();
  const events: RawEvent[] = [];
  for (let index = 0; index < count; index++) {
    events.push(reader.isMap() ? readMapEvent(reader) : readArrayEvent(reader));
  }
  reader.closeContainer();
  return events;
}

/** A rank is an i32 on the wire; a negative one is taken as u32, as the real publisher does. */
function readRank(reader: MsgpackReader): number | null {
  if (reader.skipNil()) return null;
  const rank = reader.readInteger();
  if (rank < MIN_RANK || rank > MAX_RANK) throw BAD_FIELD;
  return rank >>> 0;
}
