/** Plane: an event plane with its connection, as the worker starts, shows and stops it. */
import type { PublishFailureReason } from '../metrics/relay-metrics.ts';
import type { ChannelTransport } from '../protocol/discovery-records.ts';
import type { MessageRoom } from '../protocol/message-slab.ts';
import type { RouterEventSink } from './sink.ts';

export interface Plane extends RouterEventSink {
  readonly kind: 'zmq' | 'nats' | 'none';
  readonly isConnected: boolean;
  /** Where routers find it; null before the start and for `none`. */
  readonly endpoint: string | null;
  /** A subscriber lost messages within the last seconds, being slower than they came. */
  readonly hasSlowSubscriber: boolean;
  readonly outboxBytes: number;
  readonly outboxMessages: number;
  readonly disconnects: number;
  readonly reconnects: number;
  /** Subscribers that were sent away. */
  readonly refusals: number;
  /** What it wants free around each envelope; it sends those without, too. */
  readonly messageRoom: MessageRoom;
  /** How routers that find the source by discovery get its events; null where they need no telling. */
  readonly channel: ChannelTransport | null;
  /** Resolves once the plane takes messages, be it into its outbox. Rejects on a wrong address. */
  start(): Promise<void>;
  /**
   * Carries another publisher's messages from here on. What is left of the one before it goes, as no
   * router follows that any more; returns how many messages that is.
   */
  startPublisher(publisherId: number): number;
  /** Sends what it holds for at most `drainMs`, then closes. */
  stop(drainMs: number): Promise<void>;
}

/** Called when a plane gains or loses its connection, or has to give messages up. */
export type PlaneListener = (event: PlaneEvent) => void;

export type PlaneEvent =
  | { readonly kind: 'connected' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'dropped'; readonly reason: PublishFailureReason }
  /** A subscriber was sent away: there are as many as may be. */
  | { readonly kind: 'refused'; readonly subscribers: number };
