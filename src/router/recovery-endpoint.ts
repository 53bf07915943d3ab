/** RecoveryEndpoint: where routers ask for what they missed of a source. */
import type { RecoveryAddress, SourceIdentity } from '../protocol/discovery-records.ts';

export interface RecoveryEndpoint {
  /** Only routers of this host can ask. */
  readonly isOnLoopback: boolean;
  /** Listens for queries about the source; null where it cannot be had, and the source is live-only. */
  open(source: SourceIdentity): Promise<RecoveryAddress | null>;
  close(source: SourceIdentity): Promise<void>;
}
