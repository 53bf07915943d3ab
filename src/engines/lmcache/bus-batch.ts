/**
 * The message of LMCache's bridge: a run of bus events and where the bus stands.
 *
 * message  [0] sent at, float seconds   [1] events   [2] status map
 * event    [0] type str   [1] timestamp float seconds   [2] session id str   [3] metadata map
 * status   `lmcache` version str|nil, `bridge` version str; counts since the start: `dropped` and `unencodable`
 *          events of the bridge, `bus_dropped`; `queue_depth` int, `drain_lag_s` float, `exceptions` {class: int}
 *
 * Source  bridges/lmcache.
 */
import { Unpackr } from 'msgpackr';
import type { RawEvent } from './contract-checker.ts';
import { messageSizeFault } from './message-size.ts';

export interface BusStatus {
  readonly version: string | null;
  /** Events that the bridge's full queue refused. */
  readonly bridgeDropped: number;
  /** Events that the bridge could not put on the wire. */
  readonly bridgeUnencodable: number;
  readonly busDropped: number;
  readonly queueDepth: number;
  readonly drainLagSeconds: number;
  /** Exceptions of the bus's subscribers, by class. */
  readonly exceptions: Readonly<Record<string, number>>;
}

export interface BusBatch {
  /** Seconds, by the clock of the publisher. */
  readonly sentAt: number;
  readonly events: readonly RawEvent[];
  /** Entries that are no events. */
  readonly badEvents: number;
  readonly status: BusStatus;
}

export type BusBatchFault = 'msgpack' | 'batch_shape' | 'oversize';

/** A 64-bit integer becomes a bigint only beyond 2^53; the option is there, but not in the types. */
const unpackr = Object.assign(new Unpackr({ mapsAsObjects: true, useRecords: false }), {
  int64AsType: 'auto',
});
const MAX_EXCEPTION_CLASSES = 64;
const MAX_NAME_CHARACTERS = 128;
/** Of the exceptions of all other classes. */
const OTHER_CLASSES = 'other';
/** The clock of a message is believed up to the year 5138. */
const MAX_CLOCK_S = 1e11;

/** A word instead of the batch: what is wrong with it. */
export function readBusBatch(payload: Uint8Array): BusBatch | BusBatchFault {
  const fault = messageSizeFault(payload);
  if (fault !== null) return fault;
  let message: unknown;
  try {
    message = unpackr.unpack(payload);
  } catch {
    return 'msgpack';
  }
  if (!Array.isArray(message) || message.length < 3) return 'batch_shape';
  const [sentAt, entries, status] = message as unknown[];
  if (!isClock(sentAt) || !Array.isArray(entries) || !isRecord(status)) return 'batch_shape';
  const events: RawEvent[] = [];
  for (const entry of entries) {
    const event = readEvent(entry, sentAt);
    if (event !== null) events.push(event);
  }
  return { sentAt, events, badEvents: entries.length - events.length, status: readStatus(status) };
}

/** An event from so far behind its message would move every window on for good. */
const MAX_AHEAD_S = 60;

function readEvent(entry: unknown, sentAt: number): RawEvent | null {
  if (!Array.isArray(entry)) return null;
  const [type, timestamp, sessionId, metadata] = entry as unknown[];
  if (typeof type !== 'string' || typeof timestamp !== 'number') return null;
  if (!(timestamp >= 0 && timestamp <= sentAt + MAX_AHEAD_S)) return null;
  if (typeof sessionId !== 'string' || !isRecord(metadata)) return null;
  return { type, timestamp, sessionId, metadata };
}

function readStatus(status: Readonly<Record<string, unknown>>): BusStatus {
  const count = (value: unknown): number =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
  const exceptions = isRecord(status.exceptions) ? Object.entries(status.exceptions) : [];
  return {
    version:
      typeof status.lmcache === 'string' && status.lmcache.length <= MAX_NAME_CHARACTERS
        ? status.lmcache
        : null,
    bridgeDropped: count(status.dropped),
    bridgeUnencodable: count(status.unencodable),
    busDropped: count(status.bus_dropped),
    queueDepth: count(status.queue_depth),
    drainLagSeconds: count(status.drain_lag_s),
    exceptions: namedExceptions(exceptions.map(([name, value]) => [name, count(value)])),
  };
}

function namedExceptions(counts: readonly (readonly [string, number])[]): Record<string, number> {
  const named: Record<string, number> = {};
  let other = 0;
  let classes = 0;
  for (const [name, count] of counts) {
    if (name.length > MAX_NAME_CHARACTERS || classes >= MAX_EXCEPTION_CLASSES) other += count;
    else {
      named[name] = count;
      classes++;
    }
  }
  if (other > 0) named[OTHER_CLASSES] = (named[OTHER_CLASSES] ?? 0) + other;
  return named;
}

function isClock(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_CLOCK_S;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
