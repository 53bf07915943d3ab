/** One line of `kvrelay inspect`, as JSON or as text. Names in a message are escaped: they may be anything. */
import { oneLine } from '../errors.ts';

/** Fields in the order they are shown; numbers of 64 bits are decimal strings. */
export type Line = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

const SHOWN_HASHES = 8;
/** Known by its place, or too long for a line. */
const NOT_IN_TEXT: ReadonlySet<string> = new Set(['source', 'tokens_hashes', 'at_ms']);

/** With its line feed. */
export function jsonLine(line: Line): string {
  return `${oneLine(JSON.stringify(line))}\n`;
}

/** `12.345 engine seq=7 rank=0 stored hashes=1,2 parent=- medium=GPU …`, with its line feed. */
export function textLine(line: Line): string {
  const { at_ms: atMs, source } = line;
  const words = typeof atMs === 'number' ? [(atMs / 1000).toFixed(3)] : [];
  words.push(String(source));
  for (const [key, value] of Object.entries(line)) {
    if (key === 'type') words.push(String(value));
    else if (key === 'malformed') words.push(`malformed: ${String(value)}`);
    else if (!NOT_IN_TEXT.has(key)) words.push(`${key}=${shown(value)}`);
  }
  return `${oneLine(words.join(' '))}\n`;
}

function shown(value: Line[string]): string {
  if (value === null || value === undefined) return '-';
  if (typeof value !== 'object') return typeof value === 'string' ? quotedIfOdd(value) : `${value}`;
  const rest = value.length - SHOWN_HASHES;
  const first = value.slice(0, SHOWN_HASHES).join(',');
  return rest > 0 ? `${first},…+${rest}` : first;
}

/** So that a name with a space cannot be taken for two fields. */
function quotedIfOdd(text: string): string {
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
