/**
 * EventLog: the newest object events, encoded, for those who missed some.
 *
 * Bounds   events and bytes, whichever is hit first; the oldest go.
 */
export interface EventLogBounds {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/** The list is moved up once so many of its first entries are gone. */
const MAX_DEAD_ENTRIES = 4096;

export class EventLog {
  readonly #bounds: EventLogBounds;
  readonly #events: Buffer[] = [];
  #firstAt = 0;
  #firstId = 1;
  #bytes = 0;

  constructor(bounds: EventLogBounds) {
    this.#bounds = bounds;
  }

  /** Id of the oldest event that is kept; one above the last where none is. */
  get firstId(): number {
    return this.#firstId;
  }

  /** Id of the newest event; 0 before the first. */
  get lastId(): number {
    return this.#firstId + this.length - 1;
  }

  get length(): number {
    return this.#events.length - this.#firstAt;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Its id is the next one. */
  push(event: Buffer): void {
    this.#events.push(event);
    this.#bytes += event.length;
    while (this.length > this.#bounds.maxEvents || this.#bytes > this.#bounds.maxBytes) {
      this.#bytes -= this.#events[this.#firstAt]?.length ?? 0;
      this.#firstAt++;
      this.#firstId++;
    }
    if (this.#firstAt < MAX_DEAD_ENTRIES || this.#firstAt * 2 < this.#events.length) return;
    this.#events.splice(0, this.#firstAt);
    this.#firstAt = 0;
  }

  /** Events from `start` on: one at least, then as many as the bounds allow. */
  slice(start: number, maxEvents: number, maxBytes: number): Buffer[] {
    const events: Buffer[] = [];
    let bytes = 0;
    for (let at = this.#firstAt + start - this.#firstId; at < this.#events.length; at++) {
      const event = this.#events[at] as Buffer;
      bytes += event.length;
      if (events.length === maxEvents || (events.length > 0 && bytes > maxBytes)) break;
      events.push(event);
    }
    return events;
  }
}
