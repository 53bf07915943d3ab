/**
 * RequestTracker: which requests of LMCache are in flight, by their sentinels.
 *
 * Order    START, SUBMITTED and END come in order, the callbacks of a GPU later and in any order: a request is
 *          done once its END is there and every transfer that was submitted has ended.
 * Repeats  of a START belong to the same request, as do those of a blend END, which each worker sends.
 * Bounds   a request without news for `timeoutS` of event time is given up; above `maxPending` the oldest is.
 * Counts   both, and sentinels that come out of order. Pure: no clock but the events'.
 */
import type { BusEvent, EventName } from '../../engines/lmcache/contracts.ts';
import { LinkedMap } from './linked-map.ts';
import type { PairBounds } from './pairs.ts';
import { shortKey } from './short-key.ts';

interface Request {
  lastAt: number;
  /** Submitted, less those that have ended; below 0 while ends are ahead. */
  openTransfers: number;
  hasEnded: boolean;
}

type Role = 'start' | 'submitted' | 'finished' | 'end';

const ROLES: Readonly<Partial<Record<EventName, readonly [family: 'mp' | 'cb', role: Role]>>> = {
  MP_REQUEST_START: ['mp', 'start'],
  MP_STORE_SUBMITTED: ['mp', 'submitted'],
  MP_RETRIEVE_SUBMITTED: ['mp', 'submitted'],
  MP_STORE_END: ['mp', 'finished'],
  MP_RETRIEVE_END: ['mp', 'finished'],
  MP_REQUEST_END: ['mp', 'end'],
  CB_REQUEST_START: ['cb', 'start'],
  CB_STORE_PRE_COMPUTED_SUBMITTED: ['cb', 'submitted'],
  CB_RETRIEVE_SUBMITTED: ['cb', 'submitted'],
  CB_STORE_FINAL_SUBMITTED: ['cb', 'submitted'],
  CB_STORE_PRE_COMPUTED_END: ['cb', 'finished'],
  CB_RETRIEVE_END: ['cb', 'finished'],
  CB_STORE_FINAL_END: ['cb', 'finished'],
  CB_REQUEST_END: ['cb', 'end'],
};

export class RequestTracker {
  completed = 0;
  timedOut = 0;
  evicted = 0;
  abandoned = 0;
  /** Sentinels of a request whose START has not come before them. */
  outOfOrder = 0;
  readonly #bounds: PairBounds;
  /** In the order of their last news. */
  readonly #requests = new LinkedMap<Request>();

  constructor(bounds: PairBounds) {
    this.#bounds = bounds;
  }

  get inFlight(): number {
    return this.#requests.size;
  }

  /** Transfers that were submitted and have not ended. */
  get openTransfers(): number {
    let open = 0;
    for (const { openTransfers } of this.#requests.values()) open += Math.max(0, openTransfers);
    return open;
  }

  /** Requests of a publisher that is gone: nothing will come of them. */
  restart(): void {
    this.abandoned += this.#requests.size;
    this.#requests.clear();
  }

  push({ name, sessionId, timestamp }: BusEvent): void {
    this.advance(timestamp);
    const [family, role] = ROLES[name] ?? [];
    if (role === undefined || sessionId === '') return;
    const key = shortKey(`${family}\0${sessionId}`);
    const known = this.#requests.get(key);
    if (known === undefined && role !== 'start') {
      // A worker's further END of a blend request is no news, nor is the late end of what was given up.
      if (role === 'submitted' || (role === 'end' && family === 'mp')) this.outOfOrder++;
      return;
    }
    const request = known ?? { lastAt: timestamp, openTransfers: 0, hasEnded: false };
    this.#apply(request, role);
    request.lastAt = Math.max(request.lastAt, timestamp);
    this.#requests.take(key);
    if (request.hasEnded && request.openTransfers <= 0) this.completed++;
    else this.#keep(key, request);
  }

  #apply(request: Request, role: Role): void {
    if (role === 'submitted') request.openTransfers++;
    else if (role === 'finished') request.openTransfers--;
    // A further START means that the request goes on.
    else request.hasEnded = role === 'end';
  }

  #keep(key: string, request: Request): void {
    this.#requests.set(key, request);
    const { oldest } = this.#requests;
    if (this.#requests.size <= this.#bounds.maxPending || oldest === undefined) return;
    this.#requests.take(oldest.key);
    this.evicted++;
  }

  /** Gives up requests without news. */
  advance(now: number): void {
    for (let { oldest } = this.#requests; oldest !== undefined; { oldest } = this.#requests) {
      if (now - oldest.value.lastAt <= this.#bounds.timeoutS) return;
      this.#requests.take(oldest.key);
      this.timedOut++;
    }
  }
}
