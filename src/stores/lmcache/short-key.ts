/** A text from outside as part of a key that is kept: one of any length would take as much memory for as long. */
import { createHash } from 'node:crypto';

const MAX_CHARACTERS = 256;

export function shortKey(text: string): string {
  return text.length <= MAX_CHARACTERS ? text : createHash('sha256').update(text).digest('hex');
}

/** As much of a label's value as tells that it is too long; a slice would keep the whole text. */
export function shortLabel(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  return Buffer.from(text.slice(0, MAX_CHARACTERS)).toString();
}
