/** One seed for every property, so that CI says the same each time; `KVRELAY_SEED` tries another. */
export const fixedSeed: { seed: number; numRuns: number } = {
  seed: Number(process.env.KVRELAY_SEED ?? 20_261_130),
  numRuns: Number(process.env.KVRELAY_RUNS ?? 200),
};
