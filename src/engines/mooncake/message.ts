/**
 * What one Mooncake message says, typed.
 *
 * [0] timestamp_ms  i64     [1] events  list of maps, up to 64 of them     [2] dp_rank  u32
 *
 * Source  Mooncake Store 0.3.14, its KV event publisher and subscriber guide (RFC #1527 names).
 */

/** As the publisher folds them: memory replicas, and every other class. */
export const MOONCAKE_MEDIA = ['cpu', 'disk'] as const;
export type MooncakeMedium = (typeof MOONCAKE_MEDIA)[number];

export type MooncakeEventType = 'stored' | 'removed' | 'cleared';

/** One event. Texts are verbatim; nothing in a key is interpreted. */
export interface MooncakeEvent {
  readonly eventType: MooncakeEventType;
  /** u64, rising within a publisher process; without a hole where the message numbers have one. */
  readonly eventId: bigint;
  /** Ms since 1970, rounded where a number cannot hold it. */
  readonly timestampMs: number;
  readonly modelName: string | null;
  readonly blockSize: number | null;
  readonly additionalSalt: string | null;
  readonly loraName: string | null;
  readonly tenantId: string;
  readonly backendId: string;
  /** Null on `cleared` alone. */
  readonly medium: MooncakeMedium | null;
  readonly dpRank: number;
  /** UTF-8 of the key, a view of the payload; null on `cleared` alone. */
  readonly objectKey: Uint8Array | null;
  readonly groupId: string | null;
  /** Of `stored` alone. */
  readonly sessionId: string | null;
}

/**
 * Why an event is left out. Nothing is held under a `bad_key`, and an `unknown_type` is a new kind of
 * event; after the others what is held may be wrong.
 */
export type MooncakeEventFault = 'unknown_type' | 'bad_field' | 'missing_field' | 'bad_key';

/** Why a payload is left out. */
export type MooncakeMessageFault = 'msgpack' | 'batch_shape' | 'oversize';

export interface MooncakeMessage {
  readonly timestampMs: number;
  readonly dpRank: number;
  readonly events: readonly MooncakeEvent[];
  /** One entry an event left out, in the order of the message. */
  readonly faults: readonly MooncakeEventFault[];
}
