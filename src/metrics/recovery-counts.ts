/** RecoveryCounts: what the recovery service of a process counts, whatever rank was asked. */
import { type Counts, zeroCounts } from './counts.ts';

/** Why a request is refused in its acknowledgement. */
export const REFUSAL_REASONS = [
  'unknown_path',
  'overloaded',
  'unsupported_transport',
  'malformed_request',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Why the connection of a client is closed from this side. */
export const DROPPED_CLIENT_REASONS = [
  'handshake',
  'malformed_frame',
  'slow_frame',
  'silent',
  'idle',
  'unread_acknowledgements',
  'too_many',
] as const;
export type DroppedClientReason = (typeof DROPPED_CLIENT_REASONS)[number];

/** Why an answer did not reach the router. */
export const FAILED_ANSWER_REASONS = ['unreachable', 'timeout', 'closed_early'] as const;
export type FailedAnswerReason = (typeof FAILED_ANSWER_REASONS)[number];

export class RecoveryCounts {
  readonly refusedRequests: Counts<RefusalReason> = zeroCounts(REFUSAL_REASONS);
  readonly droppedClients: Counts<DroppedClientReason> = zeroCounts(DROPPED_CLIENT_REASONS);
  readonly failedAnswers: Counts<FailedAnswerReason> = zeroCounts(FAILED_ANSWER_REASONS);
  /** Now. */
  clients = 0;
  answersInFlight = 0;
}
