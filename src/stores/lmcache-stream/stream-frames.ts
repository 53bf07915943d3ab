/**
 * Frames of LMCache's MP server as its KV event stream has them; each but the control words is one MessagePack value.
 *
 * subscribe  uid, "subscribe_kv_events", instance id, model name, cursor, page
 * batch      uid, operation, map             end     uid, operation
 * credit     uid, empty, `ack`               cancel  uid, empty, `cancel`
 * ping       uid, 22, instance id: keeps the subscription of that instance alive; its answer means nothing here
 *
 * Source     LMCache 0.5.6.
 */
import { pack } from 'msgpackr';

const SUBSCRIBE = pack('subscribe_kv_events');
const PING = pack(22);
const EMPTY = Buffer.alloc(0);
const ACK = Buffer.from('ack');
const CANCEL = Buffer.from('cancel');

export interface SubscribeRequest {
  readonly uid: number;
  readonly instanceId: number;
  readonly modelName: string;
  readonly cursor: number;
  readonly pageRecords: number;
}

export function subscribeFrames(request: SubscribeRequest): Buffer[] {
  const { uid, instanceId, modelName, cursor, pageRecords } = request;
  const fields = [integer(instanceId), pack(modelName), integer(cursor), integer(pageRecords)];
  return [uidFrame(uid), SUBSCRIBE, ...fields];
}

export function ackFrames(uid: number): Buffer[] {
  return [uidFrame(uid), EMPTY, ACK];
}

export function cancelFrames(uid: number): Buffer[] {
  return [uidFrame(uid), EMPTY, CANCEL];
}

export function pingFrames(uid: number, instanceId: number): Buffer[] {
  return [uidFrame(uid), PING, integer(instanceId)];
}

export type StreamMessage =
  | { readonly kind: 'batch'; readonly payload: Uint8Array }
  | { readonly kind: 'end' }
  /** About another request. */
  | { readonly kind: 'foreign' };

/** Null: no message of such a server. */
export function readStreamFrames(frames: readonly Buffer[], uid: number): StreamMessage | null {
  const [from, operation, payload] = frames;
  if (from === undefined || operation === undefined || frames.length > 3) return null;
  if (!from.equals(uidFrame(uid))) return { kind: 'foreign' };
  if (!operation.equals(SUBSCRIBE)) return null;
  return payload === undefined ? { kind: 'end' } : { kind: 'batch', payload };
}

function uidFrame(uid: number): Buffer {
  return integer(uid);
}

/** As an integer whatever its size: a plain number from 2^32 on would become a float. */
function integer(value: number): Buffer {
  return value < 2 ** 32 ? pack(value) : pack(BigInt(value));
}
