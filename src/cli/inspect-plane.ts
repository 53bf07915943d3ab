/**
 * Plane messages for `kvrelay inspect`: envelopes with router events, from NATS or a ZMQ plane.
 *
 * ZMQ frames  [0] topic   [1] publisher id, 8 bytes BE   [2] sequence, 8 bytes BE
 *             [3] 0x01, envelope length as u32 BE, envelope
 */
import { Unpackr } from 'msgpackr';
import { z } from 'zod';
import type { Line } from './inspect-line.ts';
import { routerEventLine, routerEventShape } from './router-event-line.ts';

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

const eventsShape = z.array(routerEventShape(u64));

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
  return events.data.map((event) => ({
    ...head,
    ...routerEventLine(event),
    publisher: publisher_id,
  }));
}

/** Undefined where the bytes are no MessagePack. */
function unpacked(bytes: Uint8Array): unknown {
  try {
    return unpackr.unpack(bytes);
  } catch {
    return undefined;
  }
}
