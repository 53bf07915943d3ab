/** Figures of a bench as tables, in Markdown that reads well in a terminal too. */

/** Rows of cells under a head; numbers stand right. */
export function table(head, rows) {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const isText = head.map((_, column) => rows.some((row) => typeof row[column] === 'string'));
  const line = (row) =>
    `| ${row.map((cell, at) => (isText[at] ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(' | ')} |`;
  const rule = widths.map((width, at) =>
    isText[at] ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  const [top, ...body] = cells.map(line);
  return [top, `| ${rule.join(' | ')} |`, ...body].join('\n');
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, least and greatest. */
export function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** One line a stream and relay: medians of its runs. */
export function runsTable(measured) {
  const rows = measured.flatMap(({ stream, runs }) =>
    [...new Set(runs.map(({ relay }) => relay))].map((relay) => {
      const own = runs.filter((run) => run.relay === relay);
      const of = (figure) => median(own.map((run) => run[figure]));
      return [
        stream.name,
        relay,
        Number(of('seconds').toFixed(2)),
        Math.round(of('eventsPerSecond')),
        Math.round(of('blocksPerSecond')),
        Number(of('cpuSeconds').toFixed(2)),
        Math.round(of('cpuNsPerEvent')),
        Math.round(of('peakMemoryBytes') / 2 ** 20),
      ];
    }),
  );
  const figures = ['seconds', 'events/s', 'blocks/s', 'CPU s', 'CPU ns/event', 'peak MiB'];
  return table(['stream', 'relay', ...figures], rows);
}

/** kvrelay over another relay, pair by pair: events a second, CPU time an event, peak memory. */
export function ratiosOf(runs, other) {
  const [ours, theirs] = ['kvrelay', other].map((name) => runs.filter((run) => run.relay === name));
  if (theirs.length === 0) return null;
  const ratio = (figure) => spread(ours.map((run, at) => run[figure] / theirs[at][figure]));
  return {
    eventsPerSecond: ratio('eventsPerSecond'),
    cpuSeconds: ratio('cpuSeconds'),
    peakMemoryBytes: ratio('peakMemoryBytes'),
  };
}

export function ratiosTable(measured) {
  const shown = ({ median: middle, min, max }) =>
    `${middle.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
  const rows = measured.flatMap(({ stream, ratios }) =>
    Object.entries(ratios).map(([other, { eventsPerSecond, cpuSeconds, peakMemoryBytes }]) => [
      stream.name,
      `kvrelay / ${other}`,
      shown(eventsPerSecond),
      shown(cpuSeconds),
      shown(peakMemoryBytes),
    ]),
  );
  return table(['stream', 'ratio', 'events/s', 'CPU time', 'peak memory'], rows);
}
