/** What is wrong with a rank, derived from its counters at each look: nothing of it is stored. */
import { totalOf } from './metrics/counts.ts';
import type { DegradedCode } from './metrics/degraded.ts';
import type { RelayMetrics } from './metrics/relay-metrics.ts';
import type { Relay } from './relay.ts';

export function degradedCodes(
  { metrics, plane }: Pick<Relay, 'metrics' | 'plane'>,
  isEngineConnected: boolean,
): DegradedCode[] {
  const codes: DegradedCode[] = [];
  if (!isEngineConnected) codes.push('engine_disconnected');
  if (metrics.engineGaps > metrics.engineGapsAtClear) codes.push('engine_gap');
  if (metrics.replayLosses > metrics.replayLossesAtClear) codes.push('recovered_with_loss');
  if (hasLostMessagesOrRemovals(metrics)) codes.push('event_dropped');
  if (metrics.wrongSizeStores > 0 && metrics.usableStores === 0) codes.push('block_size_mismatch');
  if (hasOnlyFilteredEvents(metrics)) codes.push('filtered_only');
  if (!plane.isConnected) codes.push('plane_disconnected');
  if (!plane.isConnected && metrics.publishFailures.outbox_full > 0) codes.push('outbox_dropping');
  if (plane.hasSlowSubscriber) codes.push('slow_subscriber');
  if (metrics.untrackedBlocks + metrics.unindexedBlocks > 0) codes.push('tracking_full');
  if (metrics.isEngineUnsupported) codes.push('engine_unsupported');
  return codes;
}

export function hasOnlyFilteredEvents({ received, accepted }: RelayMetrics): boolean {
  return totalOf(received) > 0 && totalOf(accepted) === 0;
}

function hasLostMessagesOrRemovals(metrics: RelayMetrics): boolean {
  return (
    metrics.unreadableMessages > metrics.unreadableMessagesAtClear ||
    metrics.droppedRemovals > metrics.droppedRemovalsAtClear
  );
}
