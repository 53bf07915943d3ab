/** Master: what a Mooncake master answers about the objects it holds, as reconciliation needs it. */
import type { HttpGetFault } from '../../connections/http-get.ts';
import { KvRelayError } from '../../errors.ts';
import type { KeyList } from './key-list.ts';

export type MasterFault = HttpGetFault | 'bad_answer';

/** The master does not answer, or not what it should. */
export class MasterError extends KvRelayError {
  readonly code = 'KVR_MOONCAKE_MASTER';
  readonly fault: MasterFault;

  constructor(fault: MasterFault, message: string) {
    super(message, { remedy: 'Check --mooncake-master, and whether the master serves there' });
    this.fault = fault;
  }
}

/** Of its event publisher, since the master's start. */
export interface PublisherStatus {
  readonly enabled: boolean;
  readonly publishedBatches: number;
  readonly publishedEvents: number;
  readonly droppedEvents: number;
  readonly skippedKeylessEvents: number;
}

/** Tenant whose objects can be asked for; of others the master tells nothing. */
export const ASKED_TENANT = 'default';

/** Rejects with a MasterError alone. */
export interface Master {
  /** The keys of tenant `default`. */
  list(): Promise<KeyList>;
  /** The media of each key, in the order asked; none: it is not held. */
  query(keys: readonly Uint8Array[]): Promise<readonly (readonly string[])[]>;
  status(): Promise<PublisherStatus>;
}
