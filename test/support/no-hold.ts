import type { OutputHold } from '../../src/router/recovery/query-service.ts';

/** Output that waits for no answer. */
export const NO_HOLD: OutputHold = {
  isHolding: false,
  idle: async () => undefined,
  begin: () => () => undefined,
};
