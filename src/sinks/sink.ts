/**
 * RouterEventSink: where the messages of one publisher leave; a plane implements it.
 *
 * publish() never throws and never waits: what a plane cannot take now it holds, bounded, and what it
 * has to give up it counts.
 */
import type { PlaneMessage } from '../protocol/envelope.ts';

export interface RouterEventSink {
  /** Largest envelope the plane takes; what is larger fails before it reaches the plane. */
  readonly maxMessageBytes: number;
  publish(message: PlaneMessage): void;
}
