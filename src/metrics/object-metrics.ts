/** ObjectStreamMetrics: what the publisher of `kv-objects` counts. */
import { type Counts, zeroCounts } from './counts.ts';
import { PUBLISH_FAILURE_REASONS, type PublishFailureReason } from './relay-metrics.ts';

export class ObjectStreamMetrics {
  publishedMessages = 0;
  publishedEvents = 0;
  resentMessages = 0;
  readonly publishFailures: Counts<PublishFailureReason> = zeroCounts(PUBLISH_FAILURE_REASONS);
}
