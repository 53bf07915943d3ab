/**
 * Plane messages for `kvrelay inspect`: envelopes with router events, from NATS or a ZMQ plane.
 *
 * ZMQ frames  [0] topic   [1] publisher id, 8 bytes BE   [2] sequence, 8 bytes BE
 *             [3] 0x01, envelope length as u32 BE, envelope
 */
import { Unpackr } from 'msgpackr';
import { z } from 'zod';
import { STORAGE_TIERS } from '../protocol/storage-tier.ts';
import type { Line } from './inspect-line.ts';

const PLANE_FRAMES = 4;
const NUMBER_BYTES = 8;
const FRAME_VERSION = 1;
const FRAME_HEAD_BYTES = 5;

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true });

/** msgpackr gives one field as number or bigint, by its size. */
const u64 = z.union([z.int().min(0), z.bigint().min(0n)]).transform(String);

const envelopeShape = z.object({
  publisher_id: u64,
  sequence: u64,
  topic: z.string(),
  payload: z.instanceof(Uint8Array),
});

const mmInfo = z.object({ mm_objects: z.array(z.unknown()) });
const blockShape = z.object({
  block_hash: u64,
  tokens_hash: u64,
  mm_extra_info: mmInfo.nullish(),
});
const eventsShape = z.array(
  z.object({
    worker_id: u64,
    storage_tier: z.enum(STORAGE_TIERS),
    session_id: z.string().nullish(),
    event: z.object({
      event_id: u64,
      dp_rank: z.int(),
      data: z.union([
        z.literal('cleared'),
        z.object({ removed: z.object({ block_hashes: z.array(u64) }) }),
        z.object({
          stored: z.object({ parent_hash: u64.nullable(), blocks: z.array(blockShape) }),
        }),
      ]),
    }),
  }),
);

type PlaneEvent = z.infer<typeof eventsShape>[number];

/** Whether a ZMQ message is of a plane; one of an engine has three frames. */
export function isPlaneMessage(frames: readonly Uint8Array[]): boolean {
  return frames.length === PLANE_FRAMES && frames[1]?.length === NUMBER_BYTES;
}

export function zmqPlaneLines(frames: readonly Uint8Array[]): Line[] {
  const last = Buffer.from(frames[3] ?? []);
  const isWhole =
    last[0] === FRAME_VERSION &&
    last.length >= FRAME_HEAD_BYTES &&
    last.readUInt32BE(1) === last.length - FRAME_HEAD_BYTES;
  if (!isWhole) return [{ source: 'plane', malformed: 'frames' }];
  return envelopeLines(last.subarray(FRAME_HEAD_BYTES), {});
}

/** One line an event at least; `where` is added to each. */
export function envelopeLines(bytes: Uint8Array, where: Line): Line[] {
  const envelope = envelopeShape.safeParse(unpacked(bytes));
  if (!envelope.success) return [{ source: 'plane', ...where, malformed: 'envelope' }];
  const { sequence, publisher_id, payload } = envelope.data;
  const head = { source: 'plane', ...where, seq: sequence };
  const events = eventsShape.safeParse(unpacked(payload));
  if (!events.success) return [{ ...head, publisher: publisher_id, malformed: 'events' }];
  if (events.data.length === 0) return [{ ...head, publisher: publisher_id, type: 'empty' }];
  return events.data.map((event) => ({ ...head, ...eventOf(event), publisher: publisher_id }));
}

function eventOf({ worker_id, storage_tier, session_id, event }: PlaneEvent): Line {
  const { data } = event;
  const stored = data !== 'cleared' && 'stored' in data ? data.stored : null;
  const removed = data !== 'cleared' && 'removed' in data ? data.removed : null;
  const hashes = stored?.blocks.map(({ block_hash }) => block_hash) ?? removed?.block_hashes;
  const objects = stored?.blocks.flatMap(({ mm_extra_info }) => mm_extra_info?.mm_objects ?? []);
  return {
    rank: event.dp_rank,
    event_id: event.event_id,
    type: stored !== null ? 'stored' : removed !== null ? 'removed' : 'cleared',
    ...(hashes !== undefined && { hashes }),
    ...(stored !== null && { parent: stored.parent_hash }),
    tier: storage_tier,
    ...(hashes !== undefined && { blocks: hashes.length }),
    ...(stored !== null && { tokens_hashes: stored.blocks.map(({ tokens_hash }) => tokens_hash) }),
    ...(objects !== undefined && objects.length > 0 && { images: objects.length }),
    ...(session_id != null && { session: session_id }),
    worker: worker_id,
  };
}

/** Undefined where the bytes are no MessagePack. */
function unpacked(bytes: Uint8Array): unknown {
  try {
    return unpackr.unpack(bytes);
  } catch {
    return undefined;
  }
}
