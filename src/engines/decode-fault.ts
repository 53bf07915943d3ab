/** What is wrong with an event or a payload; the first four cost the event, `damaged` the message. */
export type FaultKind = 'bad_field' | 'missing_field' | 'unknown_tag' | 'bad_hash' | 'damaged';

/** Thrown and caught inside the engines folder; made once each, since bad input must stay cheap. */
export class DecodeFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind) {
    super(kind);
    this.kind = kind;
  }
}

export const DAMAGED: DecodeFault = new DecodeFault('damaged');
export const BAD_FIELD: DecodeFault = new DecodeFault('bad_field');
export const MISSING_FIELD: DecodeFault = new DecodeFault('missing_field');
export const UNKNOWN_TAG: DecodeFault = new DecodeFault('unknown_tag');
export const BAD_HASH: DecodeFault = new DecodeFault('bad_hash');
