/** The second seed, the fourth and so on, and those that have found something; see play-seeds.ts. */
import { expect, test } from 'vitest';
import { FOUND } from './found-seeds.ts';
import { playSeed, playSeeds } from './play-seeds.ts';

playSeeds('second and on');

test.each(FOUND)('history %i, which found: %s', async (seed) => {
  expect(await playSeed(seed)).toBeNull();
});
