/**
 * BatchReader: one engine payload to a native batch.
 *
 * In/out   MessagePack [time, events, data_parallel_rank]; bytes behind it are not looked at.
 * strict   all or nothing: one bad event costs the batch.
 * safe     a well-formed event that cannot be used costs only itself; the rank element may be absent.
 * Owns     a copy of the payload in kernel memory; the batch, its events and lists live until the next
 *          read.
 * Throws   never; a payload that is no batch is a BatchFault.
 * Source   ai-dynamo/dynamo 1.6.1, lib/llm/src/kv_router/publisher/zmq_listener.rs.
 */
import { KernelMemoryError } from '../kernel/kernel.ts';
import { type Compat, diverges } from '../protocol/compat.ts';
import type { BatchFault, EventFault, NativeBatch, RawEvent } from '../protocol/native-batch.ts';
import { BAD_FIELD, DAMAGED, DecodeFault, OVERSIZE } from './decode-fault.ts';
import { readArrayEvent } from './event-array.ts';
import { readMapEvent, tagOfMap } from './event-map.ts';
import { MsgpackReader } from './msgpack-reader.ts';
import { PlainEventReader } from './plain-event-reader.ts';
import { isPositionBlind } from './sglang-legacy.ts';

const BATCH_ELEMENTS = 3;
const BATCH_ELEMENTS_WITHOUT_RANK = 2;
const MAX_RANK = 2 ** 31 - 1;
const MIN_RANK = -(2 ** 31);

/** Far more events than an engine has in one step; beyond, a message is too large to be read at once. */
const MAX_EVENTS = 1 << 18;

/** Batches with stores that are looked at for signs of an old version; a version does not change. */
const INSPECTED_BATCHES = 64;

export interface BatchReaderOptions {
  readonly compat: Compat;
  /** Engine whose dialect is read; the accept set is the same for all, and `sglang` alone has old ones. */
  readonly engine: string;
}

export class BatchReader {
  readonly #reader: MsgpackReader;
  readonly #plain = new PlainEventReader();
  #batchesToInspect: number;
  #isUnsupported = false;

  constructor({ compat, engine }: BatchReaderOptions) {
    this.#reader = new MsgpackReader(compat);
    const mayBeOld = engine === 'sglang' && diverges(compat, 'old-sglang');
    this.#batchesToInspect = mayBeOld ? INSPECTED_BATCHES : 0;
  }

  read(payload: Uint8Array, arrivedAtMs: number): NativeBatch | BatchFault {
    const reader = this.#reader;
    try {
      reader.open(payload);
      const elements = reader.openArray();
      const hasRank = elements === BATCH_ELEMENTS;
      const lacksRank =
        elements === BATCH_ELEMENTS_WITHOUT_RANK && diverges(reader.compat, 'two-elements');
      if (!hasRank && !lacksRank) return 'batch_shape';
      reader.skipNumber();
      const { events, dropped } = readEvents(reader, this.#plain);
      const dpRank = hasRank ? readRank(reader) : null;
      this.#inspect(events);
      const isEngineUnsupported = this.#isUnsupported;
      return { dpRank, events, dropped, isEngineUnsupported, arrivedAtMs };
    } catch (error) {
      if (error === DAMAGED) return 'msgpack';
      if (error === OVERSIZE || error instanceof KernelMemoryError) return 'oversize';
      if (error instanceof DecodeFault) return 'batch_shape';
      throw error;
    } finally {
      reader.close();
    }
  }

  /** Gives the kernel's memory back; nothing more is read. */
  free(): void {
    this.#reader.free();
    this.#plain.free();
  }

  /** What is found holds for every rank of the socket from then on. */
  #inspect(events: readonly RawEvent[]): void {
    if (this.#batchesToInspect === 0 || this.#isUnsupported) return;
    const store = events.find(({ type }) => type === 'stored');
    if (store === undefined) return;
    this.#batchesToInspect--;
    this.#isUnsupported = isPositionBlind(store);
  }
}

function readEvents(
  reader: MsgpackReader,
  plain: PlainEventReader,
): Pick<NativeBatch, 'events' | 'dropped'> {
  // A bin counts as a list of numbers, which no event is: only an empty one is a list of events.
  if (reader.isBin()) {
    if (reader.readBytes().length > 0) throw BAD_FIELD;
    return { events: [], dropped: null };
  }
  const count = reader.openArray();
  if (count > MAX_EVENTS) throw OVERSIZE;
  const events: RawEvent[] = [];
  let dropped: DroppedCounts | null = null;
  for (let index = 0; index < count; index++) {
    index += plain.read(reader, count - index, events);
    if (index === count) break;
    const { position, depth } = reader;
    try {
      events.push(reader.isMap() ? readMapEvent(reader) : readArrayEvent(reader));
    } catch (fault) {
      if (!(fault instanceof DecodeFault) || !diverges(reader.compat, 'bad-event')) throw fault;
      reader.position = position;
      reader.depth = depth;
      dropped ??= new DroppedCounts();
      dropped.add(reader, fault);
    }
  }
  reader.closeContainer();
  return { events, dropped };
}

class DroppedCounts {
  readonly byReason: Record<EventFault, number> = {
    unknown_tag: 0,
    bad_field: 0,
    missing_field: 0,
    bad_hash: 0,
  };
  removals = 0;

  /** Skips the event at hand and counts it. Rethrows what costs the whole message. */
  add(reader: MsgpackReader, { kind }: DecodeFault): void {
    if (kind === 'damaged') throw DAMAGED;
    if (kind === 'oversize') throw OVERSIZE;
    const { position, depth } = reader;
    const tag = tagOf(reader);
    reader.position = position;
    reader.depth = depth;
    reader.skip();
    this.byReason[kind]++;
    const isHarmless = kind === 'unknown_tag' || tag === 'BlockStored' || tag === 'Ignored';
    if (!isHarmless) this.removals++;
  }
}

/** The tag of an event whose fields need not be right; undefined where it has none. */
function tagOf(reader: MsgpackReader): string | undefined {
  if (reader.isMap()) return tagOfMap(reader);
  if (!reader.isArray() || reader.openArray() === 0 || !reader.isText()) return undefined;
  return reader.readTextOrUndefined();
}

/** A rank is an i32 on the wire; a negative one is taken as u32, as the real publisher does. */
function readRank(reader: MsgpackReader): number | null {
  if (reader.skipNil()) return null;
  const rank = reader.readInteger();
  if (rank < MIN_RANK || rank > MAX_RANK) throw BAD_FIELD;
  return rank >>> 0;
}
