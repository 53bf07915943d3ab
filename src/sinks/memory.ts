/** A plane that keeps what it is given: for tests, benchmarks and embedding. */
import type { PlaneMessage } from '../protocol/envelope.ts';
import type { RouterEventSink } from './sink.ts';

export class MemorySink implements RouterEventSink {
  readonly maxMessageBytes: number;
  /** Envelopes and their numbers; the events' lists do not outlive their batch. */
  readonly messages: Pick<PlaneMessage, 'sequence' | 'envelope'>[] = [];

  constructor(maxMessageBytes: number = Number.POSITIVE_INFINITY) {
    this.maxMessageBytes = maxMessageBytes;
  }

  publish({ sequence, envelope }: PlaneMessage): void {
    this.messages.push({ sequence, envelope });
  }
}
