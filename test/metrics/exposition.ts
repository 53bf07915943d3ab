/**
 * A strict reader of the Prometheus text format, as an independent check: one line, one rule.
 *
 * Throws  on a line that is neither HELP, TYPE, blank nor `name{labels} value`; on a sample outside
 *         the family its TYPE line opened; on a family opened twice; on a value that is no number.
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface SampleFamily {
  readonly name: string;
  readonly type: string;
  /** Over all its samples, but for the bucket bound of a histogram. */
  readonly labels: ReadonlySet<string>;
}

const HELP_LINE = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) \S.*$/;
const TYPE_LINE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary)$/;
const SAMPLE_LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

export function parseExposition(text: string): Sample[] {
  const samples: Sample[] = [];
  readLines(text, (_, sample) => samples.push(sample));
  return samples;
}

export function parseFamilies(text: string): SampleFamily[] {
  const families = new Map<string, { name: string; type: string; labels: Set<string> }>();
  readLines(text, ({ name, type }, { labels }) => {
    const family = families.get(name) ?? { name, type, labels: new Set<string>() };
    families.set(name, family);
    for (const label of Object.keys(labels)) if (label !== 'le') family.labels.add(label);
  });
  return [...families.values()];
}

function readLines(
  text: string,
  onSample: (family: { name: string; type: string }, sample: Sample) => void,
): void {
  if (!text.endsWith('\n')) throw new Error('The exposition does not end with a line feed');
  const families = new Set<string>();
  let family = { name: '', type: '' };
  for (const line of text.split('\n')) {
    const type = TYPE_LINE.exec(line);
    if (type !== null) {
      family = { name: type[1] as string, type: type[2] as string };
      if (families.has(family.name)) throw new Error(`${family.name} appears twice`);
      families.add(family.name);
    } else if (line !== '' && !HELP_LINE.test(line)) {
      const sample = parseSample(line);
      if (!belongs(sample.name, family)) throw new Error(`${sample.name} is outside its family`);
      onSample(family, sample);
    }
  }
}

function belongs(sampleName: string, family: { name: string; type: string }): boolean {
  if (sampleName === family.name) return family.type !== 'histogram';
  const suffix = sampleName.slice(family.name.length);
  return (
    sampleName.startsWith(family.name) &&
    ['histogram', 'summary'].includes(family.type) &&
    ['_bucket', '_sum', '_count'].includes(suffix)
  );
}

function parseSample(line: string): Sample {
  const [, name, labelText = '', value] = SAMPLE_LINE.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`Not a sample: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < labelText.length) {
    const [, label, escaped] = LABEL.exec(labelText) ?? [];
    if (label === undefined || escaped === undefined) throw new Error(`Bad labels: ${line}`);
    if (label in labels) throw new Error(`Label ${label} twice: ${line}`);
    labels[label] = escaped.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char));
  }
  return { name, labels, value: Number(value) };
}
