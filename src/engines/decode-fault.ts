import type { EventFault } from '../protocol/native-batch.ts';

/** What is wrong with an event (that costs the event, in `safe`) or with the whole payload. */
export type FaultKind = EventFault | 'damaged' | 'oversize';

/** Thrown and caught inside the engines folder; made once each, since bad input must stay cheap. */
export class DecodeFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind) {
    super(kind);
    this.kind = kind;
  }
}

export const DAMAGED: DecodeFault = new DecodeFault('damaged');
/** More elements than one message is read for. */
export const OVERSIZE: DecodeFault = new DecodeFault('oversize');
export const BAD_FIELD: DecodeFault = new DecodeFault('bad_field');
export const MISSING_FIELD: DecodeFault = new DecodeFault('missing_field');
export const UNKNOWN_TAG: DecodeFault = new DecodeFault('unknown_tag');
export const BAD_HASH: DecodeFault = new DecodeFault('bad_hash');
