/** The clock of a store source; a simulation turns one of its own. */
export interface StoreClock {
  /** Monotonic. */
  nowMs(): number;
  /** Returns what takes it back. */
  schedule(callback: () => void, delayMs: number): () => void;
}

export const SYSTEM_STORE_CLOCK: StoreClock = {
  nowMs: () => performance.now(),
  schedule: (callback, delayMs) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
