/** The first seed, the third and so on; see play-seeds.ts. */
import { playSeeds } from './play-seeds.ts';

playSeeds('first and on');
