/**
 * ContractChecker: raw events of the bus into typed ones, held against the contracts.
 *
 * In/out    one event in, the same event out; what broke its contract is left out of its metadata.
 * Counts    a violation by event type and field; unknown types, which do not leave; additive keys, which
 *           are of no use here. Never throws.
 * Bounds    all names that are counted come from the table; of unknown types 16 are kept by name.
 */
import {
  type BusEvent,
  CONTRACTS,
  type EventContract,
  type EventName,
  type FieldContract,
  isInVersion,
  NAME_BY_VALUE,
} from './contracts.ts';
import { fits, fromStream } from './field-checks.ts';

/** An event as it was sent: nothing in it is believed yet. */
export interface RawEvent {
  readonly type: string;
  readonly timestamp: number;
  readonly sessionId: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export const VIOLATION_KINDS = ['missing', 'type', 'value'] as const;
export type ViolationKind = (typeof VIOLATION_KINDS)[number];

export interface Violation {
  readonly event: EventName;
  /** A key of the metadata, or `session_id`. */
  readonly field: string;
  readonly kind: ViolationKind;
  readonly count: number;
}

const MAX_UNKNOWN_NAMES = 16;
const MAX_NAME_CHARACTERS = 64;

export class ContractChecker {
  readonly events: Map<EventName, number> = new Map();
  readonly additiveKeys: Map<EventName, number> = new Map();
  /** Events of a type that no known version has. */
  unknownEvents = 0;
  readonly unknownNames: Set<string> = new Set();
  readonly #violations = new Map<string, { -readonly [Key in keyof Violation]: Violation[Key] }>();

  get violations(): readonly Violation[] {
    return [...this.#violations.values()];
  }

  /** `version` is that of the publisher, null where it is not known; null: an unknown type. */
  check(raw: RawEvent, version: string | null): BusEvent | null {
    const name = NAME_BY_VALUE.get(raw.type);
    if (name === undefined) {
      this.#countUnknown(raw.type);
      return null;
    }
    const contract = CONTRACTS[name];
    this.events.set(name, (this.events.get(name) ?? 0) + 1);
    if (contract.session === 'always' && raw.sessionId === '')
      this.#countViolation(name, 'session_id', 'missing');
    const metadata: Record<string, unknown> = {};
    for (const [field, fieldContract] of Object.entries(contract.fields)) {
      const value = this.#readField(name, field, fieldContract, raw, version);
      if (value !== undefined) metadata[field] = value;
    }
    this.#countAdditive(name, contract, raw);
    const { timestamp, sessionId } = raw;
    // The table ties name and metadata together; the compiler cannot follow a name it does not know.
    return { name, timestamp, sessionId, metadata } as BusEvent;
  }

  /** Undefined: not there, or not to be believed. */
  #readField(
    event: EventName,
    field: string,
    contract: FieldContract,
    raw: RawEvent,
    version: string | null,
  ): unknown {
    const sent = Object.hasOwn(raw.metadata, field) ? raw.metadata[field] : undefined;
    const value = CONTRACTS[event].isOnStream ? fromStream(contract.type, sent) : sent;
    if (value === undefined || (value === null && contract.absent !== undefined)) {
      if (mustBeThere(contract, raw, version)) this.#countViolation(event, field, 'missing');
      return undefined;
    }
    if (!fits(contract.type, value)) {
      this.#countViolation(event, field, 'type');
      return undefined;
    }
    if (contract.values !== undefined && !contract.values.includes(value as string))
      this.#countViolation(event, field, 'value');
    return value;
  }

  #countViolation(event: EventName, field: string, kind: ViolationKind): void {
    const key = `${event} ${field} ${kind}`;
    const known = this.#violations.get(key);
    if (known === undefined) this.#violations.set(key, { event, field, kind, count: 1 });
    else known.count++;
  }

  #countAdditive(event: EventName, contract: EventContract, raw: RawEvent): void {
    let added = 0;
    for (const key in raw.metadata) if (!Object.hasOwn(contract.fields, key)) added++;
    if (added > 0) this.additiveKeys.set(event, (this.additiveKeys.get(event) ?? 0) + added);
  }

  #countUnknown(type: string): void {
    this.unknownEvents++;
    if (this.unknownNames.size < MAX_UNKNOWN_NAMES)
      // A slice would keep the whole text.
      this.unknownNames.add(Buffer.from(type.slice(0, MAX_NAME_CHARACTERS)).toString());
  }
}

/** A key that has come or gone with a version is asked of a known version only. */
function mustBeThere(contract: FieldContract, raw: RawEvent, version: string | null): boolean {
  const { absent, since, until } = contract;
  if (
    version === null ? since !== undefined || until !== undefined : !isInVersion(version, contract)
  )
    return false;
  if (absent === undefined) return true;
  return absent.where !== undefined && raw.metadata[absent.where] !== absent.is;
}
