/**
 * The contracts of LMCache's EventBus as one table: every event type with its metadata, from 0.5.1, the
 * first version with all types of the published contract, to 0.5.6. The checker, the types of the stages
 * and `docs/lmcache-events.md` come from here.
 *
 * since, until   first and last version with it; none: before 0.5.1, after 0.5.6
 * by             who publishes it
 * isOnStream     recorded by a GPU stream, which keeps integers and makes every other value a text
 * absent         the key may be missing, or nil; with `where`, only while that key has the value `is`
 *
 * Source  LMCache 0.5.1 to 0.5.6, the places that publish.
 */
import { CB_CONTRACTS } from './contracts-cb.ts';
import { CB_LEG_CONTRACTS } from './contracts-cb-legs.ts';
import { L1_CONTRACTS } from './contracts-l1.ts';
import { L2_CONTRACTS } from './contracts-l2.ts';
import { MP_CONTRACTS } from './contracts-mp.ts';

/** Exact: a number up to 2^53, beyond that a bigint. */
export type Int = number | bigint;

/** Identity of an object in LMCache's storage. */
export interface ObjectKey {
  readonly chunk_hash: Uint8Array;
  readonly model_name: string;
  readonly kv_rank: Int;
  readonly object_group_id: Int;
  /** Empty where requests are not isolated. */
  readonly cache_salt: string;
}

export interface BlockRecord {
  readonly req_id: string;
  readonly new_block_ids: readonly Int[];
  readonly new_token_ids: readonly Int[];
}

/** A timed section: phase, direction, device index, milliseconds, bytes, transfer key, start and end in seconds. */
export type PhaseSample = readonly unknown[];

/** What a type of the table is once it has been read. */
export interface FieldValues {
  readonly int: Int;
  readonly float: number;
  readonly bool: boolean;
  readonly text: string;
  readonly keys: readonly ObjectKey[];
  readonly objectMetas: readonly unknown[];
  readonly saltCounts: Readonly<Record<string, number>>;
  readonly ints: readonly Int[];
  readonly texts: readonly string[];
  readonly intLists: readonly (readonly Int[])[];
  readonly hashes: readonly Uint8Array[];
  readonly hashesOrNil: readonly (Uint8Array | null)[];
  readonly blockRecords: readonly BlockRecord[];
  readonly phaseSamples: readonly PhaseSample[];
  readonly capacitySnapshot: object;
  readonly map: object;
}
export type FieldType = keyof FieldValues;

export interface FieldContract {
  readonly type: FieldType;
  readonly since?: string;
  readonly until?: string;
  /** The only values; another one is a violation. */
  readonly values?: readonly string[];
  readonly absent?: { readonly why: string; readonly where?: string; readonly is?: number };
}

export interface EventContract {
  /** On the wire. */
  readonly value: string;
  readonly since?: string;
  readonly until?: string;
  readonly by: string;
  /** Whether a session id comes with it; none: it has no request. */
  readonly session?: 'always' | 'if known';
  readonly isOnStream?: true;
  readonly fields: Readonly<Record<string, FieldContract>>;
}

type Table = typeof L1_CONTRACTS &
  typeof L2_CONTRACTS &
  typeof MP_CONTRACTS &
  typeof CB_CONTRACTS &
  typeof CB_LEG_CONTRACTS;
export type EventName = keyof Table;

/** What is read of an event's metadata: a key that is missing or broke its contract is left out. */
export type MetadataOf<Name extends EventName> = {
  readonly [Field in keyof Table[Name]['fields']]?: Table[Name]['fields'][Field] extends {
    readonly type: infer Type extends FieldType;
  }
    ? FieldValues[Type]
    : never;
};

interface BusEventOf<Name extends EventName> {
  readonly name: Name;
  /** Wall clock of the publisher, in seconds. */
  readonly timestamp: number;
  /** Empty where there is none. */
  readonly sessionId: string;
  readonly metadata: MetadataOf<Name>;
}
/** One event of the bus; `name` tells the metadata. */
export type BusEvent<Name extends EventName = EventName> = {
  [Each in Name]: BusEventOf<Each>;
}[Name];

const TABLE: Table = {
  ...L1_CONTRACTS,
  ...L2_CONTRACTS,
  ...MP_CONTRACTS,
  ...CB_CONTRACTS,
  ...CB_LEG_CONTRACTS,
};
export const CONTRACTS: Readonly<Record<EventName, EventContract>> = TABLE;

export const EVENT_NAMES = Object.keys(CONTRACTS) as readonly EventName[];

/** By the event type's value, as it is on the wire. */
export const NAME_BY_VALUE: ReadonlyMap<string, EventName> = new Map(
  EVENT_NAMES.map((name) => [CONTRACTS[name].value, name]),
);

export const NEWEST_VERSION = '0.5.6';

/** Whether a version has what is there from `since` to `until`. */
export function isInVersion(
  version: string,
  { since, until }: Pick<EventContract, 'since' | 'until'>,
): boolean {
  const isLate = since !== undefined && compareVersions(version, since) < 0;
  return !isLate && (until === undefined || compareVersions(version, until) <= 0);
}

/** Below 0: the first is older. A suffix such as `rc1` or `.dev3` is left out of it. */
function compareVersions(one: string, other: string): number {
  const [ones, others] = [one, other].map((version) => version.split('.').map(Number.parseFloat));
  for (let part = 0; part < 3; part++) {
    const difference = (ones?.[part] ?? 0) - (others?.[part] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
