/**
 * MooncakeView: what the messages of one Mooncake master say, in their order, applied to the state.
 *
 * Loss     a gap, a restart, a message or event that cannot be read: what is held may be wrong. Without
 *          a master all of it is given up; with one, what the master cannot be asked about, and the rest
 *          is suspect until it has been asked.
 * Held     while an answer of the master is on its way, messages wait and are applied behind it.
 * Scope    the master answers for tenant `default` of the backend that its events named last; until one
 *          did, answers stand under an empty name.
 */
import type {
  MooncakeEvent,
  MooncakeEventFault,
  MooncakeMessage,
} from '../../engines/mooncake/message.ts';
import { MooncakeReader } from '../../engines/mooncake/message-reader.ts';
import type { SourceMetrics } from '../../metrics/source-metrics.ts';
import type { ObjectScope } from '../objects/object-change.ts';
import type { ObjectState } from '../objects/object-state.ts';
import { HeldMessages } from './held-messages.ts';
import { ASKED_TENANT } from './master.ts';
import { MessageOrder } from './message-order.ts';

export const MOONCAKE = 'mooncake';

export type LossCause = 'gap' | 'restart' | 'unreadable';

export interface MooncakeViewOptions {
  readonly state: ObjectState;
  readonly metrics: SourceMetrics;
  /** A master can be asked. */
  readonly hasMaster: boolean;
  readonly maxHeldBytes: number;
  /** Before the message that told the loss is applied. Must not throw. */
  readonly onLoss: (cause: LossCause, lostMessages: number) => void;
  /** Messages may have been missed that no number tells of: at the start, or behind a new link. */
  readonly onMissed: () => void;
  /** The backend has another name than the answers that were taken stand under. */
  readonly onBackend: () => void;
}

export class MooncakeView {
  /** What is held may be wrong. */
  isSuspect = false;
  readonly #options: MooncakeViewOptions;
  readonly #order = new MessageOrder();
  readonly #reader = new MooncakeReader();
  readonly #held: HeldMessages;
  #backendId = '';
  /** The last message holds something that could not be read. */
  #isEndUnread = false;
  /** No message has come over the present link. */
  #isNewLink = false;

  constructor(options: MooncakeViewOptions) {
    this.#options = options;
    this.#held = new HeldMessages(options.maxHeldBytes);
  }

  get lastSequence(): bigint | null {
    return this.#order.lastSequence;
  }

  /** Of the last event; null as well where one behind it could not be read. */
  get lastEventId(): bigint | null {
    return this.#isEndUnread ? null : this.#order.lastEventId;
  }

  get heldMessages(): number {
    return this.#held.length;
  }

  /** What the master's answers are about. */
  get askedScope(): ObjectScope {
    return { source: MOONCAKE, backendId: this.#backendId, tenantId: ASKED_TENANT };
  }

  take(sequence: bigint, payload: Uint8Array): void {
    if (this.#held.isHolding) {
      if (this.#held.push({ sequence, payload })) return;
      this.#options.metrics.brokenHolds++;
      this.release();
    }
    this.#apply(sequence, payload);
  }

  /** Who is at the other end now may be another life that has come just as far. */
  noteLink(): void {
    this.#isNewLink = true;
  }

  /** A message was lost to its frames. */
  takeUnreadable(): void {
    this.#lose('unreadable', 0);
  }

  /** Messages wait from here on. */
  hold(): void {
    this.#held.hold();
  }

  /** Applies what was held; false where the hold had been broken before. */
  release(): boolean {
    const wasHolding = this.#held.isHolding;
    for (const { sequence, payload } of this.#held.release()) this.#apply(sequence, payload);
    return wasHolding;
  }

  get isHolding(): boolean {
    return this.#held.isHolding;
  }

  /** The publisher has begun anew, though no message has said so yet. */
  noteRestart(): void {
    this.#order.reset();
    this.#lose('restart', 0);
  }

  /** The last messages were lost, though no number has shown it yet. */
  noteLostTail(): void {
    this.#lose('gap', 0);
  }

  /** Gives up all that the source told. */
  invalidate(): void {
    for (const scope of this.#options.state.scopes()) {
      if (scope.source === MOONCAKE) this.#options.state.cleared(scope, 'invalidated');
    }
    this.isSuspect = false;
  }

  #apply(sequence: bigint, payload: Uint8Array): void {
    const { metrics } = this.#options;
    const message = this.#reader.read(payload);
    this.#isEndUnread = typeof message === 'string' || message.faults.length > 0;
    if (typeof message === 'string') {
      metrics.malformed[message]++;
      this.#observe(sequence, []);
      this.#lose('unreadable', 0);
      return;
    }
    const events = inOrder(message.events);
    this.#observe(sequence, events);
    for (const event of events) this.#applyEvent(event);
    // Behind them: what was left out may have taken away what one of them has brought.
    if (this.#noteFaults(message)) this.#lose('unreadable', 0);
  }

  #observe(sequence: bigint, events: readonly MooncakeEvent[]): void {
    const { metrics } = this.#options;
    const first = events.at(0)?.eventId ?? null;
    // A master that comes back under another name is the one that can be asked.
    if (events[0] !== undefined) this.#learnBackend(events[0].backendId);
    const last = events.at(-1)?.eventId ?? null;
    const step = this.#order.observe(sequence, first, last, !this.#isEndUnread);
    if (step.kind === 'gap') {
      metrics.lostMessages += step.lostMessages;
      this.#lose('gap', step.lostMessages);
    } else if (step.kind === 'restart') {
      metrics.restarts++;
      this.#lose('restart', 0);
    } else if (step.kind === 'first' ? sequence > 1n : this.#isNewLink) {
      this.#options.onMissed();
    }
    this.#isNewLink = false;
  }

  /** True where an event that is left out may have taken something away. */
  #noteFaults({ faults }: MooncakeMessage): boolean {
    for (const fault of faults) this.#options.metrics.droppedEvents[fault]++;
    return faults.some(mayMislead);
  }

  #applyEvent(event: MooncakeEvent): void {
    const { state, metrics } = this.#options;
    const { eventType, objectKey, medium, backendId, tenantId } = event;
    this.#learnBackend(backendId);
    const scope = { source: MOONCAKE, backendId, tenantId };
    const counts = metrics.events[eventType];
    counts.received++;
    const hasChanged =
      objectKey === null || medium === null
        ? state.cleared(scope)
        : eventType === 'stored'
          ? state.stored(scope, objectKey, medium, event)
          : state.removed(scope, objectKey, medium);
    counts[hasChanged ? 'applied' : 'repeated']++;
  }

  #learnBackend(backendId: string): void {
    if (backendId === this.#backendId) return;
    const before = this.askedScope;
    this.#backendId = backendId;
    // Answers that came before the name was known come again under it.
    if (before.backendId !== '') return;
    this.#options.state.cleared(before, 'reconciled');
    this.#options.onBackend();
  }

  #lose(cause: LossCause, lostMessages: number): void {
    const { state, hasMaster, onLoss } = this.#options;
    if (hasMaster) {
      const asked = this.askedScope;
      for (const scope of state.scopes()) {
        const canBeAsked = scope.tenantId === asked.tenantId && scope.backendId === asked.backendId;
        if (scope.source === MOONCAKE && !canBeAsked) state.cleared(scope, 'invalidated');
      }
      this.isSuspect = true;
    } else {
      this.invalidate();
    }
    onLoss(cause, lostMessages);
  }
}

/** Nothing is ever held under a bad key, and an unknown type is a new kind of event. */
function mayMislead(fault: MooncakeEventFault): boolean {
  return fault === 'bad_field' || fault === 'missing_field';
}

/** By event id; a publisher sends them so. */
function inOrder(events: readonly MooncakeEvent[]): readonly MooncakeEvent[] {
  const isSorted = events.every(
    (event, at) => at === 0 || event.eventId >= (events[at - 1] as MooncakeEvent).eventId,
  );
  if (isSorted) return events;
  return [...events].sort((one, other) => (one.eventId < other.eventId ? -1 : 1));
}
