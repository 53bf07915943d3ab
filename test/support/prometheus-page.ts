/** A Prometheus page as values: series under one spelling, however the page orders labels and writes numbers. */
export interface PrometheusPage {
  readonly types: ReadonlyMap<string, string>;
  /** By name and labels, sorted; a label without a value is as good as none. */
  readonly series: ReadonlyMap<string, number>;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parsePage(text: string): PrometheusPage {
  const types = new Map<string, string>();
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type?.[1] !== undefined && type[2] !== undefined) types.set(type[1], type[2]);
    if (line === '' || line.startsWith('#')) continue;
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
    if (name === '') throw new Error(`No sample: ${line}`);
    series.set(`${name}{${normalized(labels)}}`, Number(value.replace('Inf', 'Infinity')));
  }
  return { types, series };
}

function normalized(labels: string): string {
  return [...labels.matchAll(LABEL)]
    .filter(([, , value]) => value !== '')
    .map(([text, name, value]) => (name === 'le' ? `le="${Number(value) || value}"` : text))
    .sort()
    .join();
}

/** The part of a page whose names begin so. */
export function pageOf(page: PrometheusPage, prefix: string): PrometheusPage {
  const own = <Value>(map: ReadonlyMap<string, Value>): Map<string, Value> =>
    new Map([...map].filter(([name]) => name.startsWith(prefix)));
  return { types: own(page.types), series: own(page.series) };
}
