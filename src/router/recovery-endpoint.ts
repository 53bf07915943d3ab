/** RecoveryEndpoint: where routers ask for what they missed of a source. */
import type { RecoveryAddress, SourceIdentity } from '../protocol/discovery-records.ts';

export interface RecoveryEndpoint {
  /** Listens for queries about the source; null where it cannot be had, and the source is live-only. */
  open(source: SourceIdentity): Promise<RecoveryAddress | null>;
  close(source: SourceIdentity): Promise<void>;
}
