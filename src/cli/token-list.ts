/** Token ids as they stand on a command line. */
import { type Kind, U32_MAX } from '../config/kinds.ts';

const MAX_TOKENS = 100_000;

/** u32s, comma separated. */
export const tokenList: Kind<readonly number[]> = {
  placeholder: 'ID[,ID…]',
  allowed: `1 to ${MAX_TOKENS} token ids from 0 to ${U32_MAX}, comma separated`,
  parse: (text) => {
    const words = text.split(',', MAX_TOKENS + 1);
    const tokens = words.map((word) => (/^\d{1,10}$/.test(word) ? Number(word) : Number.NaN));
    const isAllowed = tokens.length <= MAX_TOKENS && tokens.every((token) => token <= U32_MAX);
    return isAllowed ? tokens : undefined;
  },
};
