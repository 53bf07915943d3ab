import { newestOf } from './engines.ts';
import { describeLives } from './lives-suite.ts';

describeLives(newestOf('sglang'));
