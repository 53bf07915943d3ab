/**
 * Samples of a Prometheus text page, of the few series that are wanted.
 *
 * In       text from outside, already bounded in bytes; it is never trusted.
 * Bounds   MAX_LINES lines; a longer line than MAX_LINE_CHARACTERS is passed over, as is one that
 *          is no sample.
 * Source   Prometheus text exposition format 0.0.4.
 */
const MAX_LINES = 100_000;
const MAX_LINE_CHARACTERS = 16_384;

export interface Sample {
  readonly labels: ReadonlyMap<string, string>;
  /** Any number there is, NaN and infinities too. */
  readonly value: number;
}

/** Samples by series name, in page order; null where the page has too many lines. */
export function samplesOf(
  page: string,
  names: readonly string[],
): ReadonlyMap<string, readonly Sample[]> | null {
  const samples = new Map<string, Sample[]>(names.map((name) => [name, []]));
  let lines = 0;
  for (let start = 0; start < page.length; ) {
    if (++lines > MAX_LINES) return null;
    const found = page.indexOf('\n', start);
    const end = found < 0 ? page.length : found;
    const name = names.find((one) => isSampleOf(page, start, one));
    if (name !== undefined && end - start <= MAX_LINE_CHARACTERS) {
      const sample = readSample(page.slice(start + name.length, end));
      if (sample !== null) samples.get(name)?.push(sample);
    }
    start = end + 1;
  }
  return samples;
}

function isSampleOf(page: string, start: number, name: string): boolean {
  if (!page.startsWith(name, start)) return false;
  const next = page[start + name.length];
  return next === '{' || next === ' ' || next === '\t';
}

/** `{label="value",…} number [time]`; null where it is anything else. */
function readSample(text: string): Sample | null {
  const labels = new Map<string, string>();
  let at = 0;
  if (text[0] === '{') {
    const label = /\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?/y;
    label.lastIndex = 1;
    for (let match = label.exec(text); match !== null; match = label.exec(text)) {
      labels.set(match[1] as string, unescaped(match[2] as string));
      at = label.lastIndex;
    }
    at = Math.max(at, 1);
    if (text[at] !== '}') return null;
    at++;
  }
  const number = /^\s+(\S+)(?:\s+-?\d+)?\s*$/.exec(text.slice(at))?.[1];
  const value = number === undefined ? null : numberOf(number);
  return value === null ? null : { labels, value };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

/** Go's spelling of a float; null where it is none. */
function numberOf(text: string): number | null {
  if (/^[+-]?inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return Number.NaN;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : null;
}
