/**
 * JSON whose integers stay exact: worker ids are u64, and `JSON.parse` rounds above 2^53.
 *
 * Reads    an integer outside ±(2^53 − 1) as a bigint, everything else as `JSON.parse` does.
 * Writes   a bigint as a bare integer, compact, keys in the order given.
 */

export type LosslessJson =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly LosslessJson[]
  | { readonly [key: string]: LosslessJson | undefined };

/** Stands in front of an integer that is carried through the parser as text. */
const MARK = '\u0000int:';
const ESCAPED_MARK = JSON.stringify(MARK).slice(1, -1);
const MARKED = new RegExp(`^${MARK}(-?\\d+)$`);

/**
 * Strings are matched whole, so that digits in them are left alone, closed or not: each is looked at once,
 * however its quotes are escaped.
 */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|-?\d[\d.eE+-]*/g;

/** Throws SyntaxError where the text is not JSON. */
export function parseLosslessJson(text: string): unknown {
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token))
      ? `"${ESCAPED_MARK}${token}"`
      : token,
  );
  return JSON.parse(marked, (_key, value: unknown) => {
    const digits = typeof value === 'string' ? MARKED.exec(value)?.[1] : undefined;
    return digits === undefined ? value : BigInt(digits);
  });
}

export function writeLosslessJson(value: LosslessJson): string {
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(writeLosslessJson).join(',')}]`;
  const members = Object.entries(value).flatMap(([key, member]) =>
    member === undefined ? [] : [`${JSON.stringify(key)}:${writeLosslessJson(member)}`],
  );
  return `{${members.join(',')}}`;
}
