/** No plane: events are processed and counted, and leave nowhere. */
import { type MessageRoom, NO_ROOM } from '../protocol/message-slab.ts';
import type { Plane } from './plane.ts';

export class NonePlane implements Plane {
  readonly kind = 'none';
  readonly maxMessageBytes: number = Number.POSITIVE_INFINITY;
  readonly isConnected = true;
  readonly endpoint = null;
  readonly hasSlowSubscriber = false;
  readonly outboxBytes = 0;
  readonly outboxMessages = 0;
  readonly disconnects = 0;
  readonly refusals = 0;
  readonly reconnects = 0;

  readonly messageRoom: MessageRoom = NO_ROOM;
  readonly channel = null;

  startPublisher(): number {
    return 0;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  publish(): void {}
}
