/** The page's script, part 1 of 4: values as text, and rates from successive snapshots. */
export const PAGE_FORMAT_SCRIPT: string = `
const RATE_WINDOW_S = 10;
const HISTORY_S = 60;
const NOTHING = '–';
const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

function countText(value) {
  return isNumber(value) ? grouped.format(value) : NOTHING;
}

function rateText(perSecond) {
  if (!isNumber(perSecond)) return NOTHING;
  const isSmall = perSecond > 0 && perSecond < 10;
  return (isSmall ? oneDigit : grouped).format(perSecond) + ' /s';
}

function latencyText(ms) {
  if (!isNumber(ms)) return NOTHING;
  if (ms < 1) return threeDigits.format(ms * 1000) + ' µs';
  return ms < 1000 ? threeDigits.format(ms) + ' ms' : threeDigits.format(ms / 1000) + ' s';
}

function ageText(ms) {
  if (!isNumber(ms)) return 'none yet';
  if (ms < 1000) return grouped.format(ms) + ' ms ago';
  return ms < 60000 ? oneDigit.format(ms / 1000) + ' s ago' : durationText(ms / 1000) + ' ago';
}

function durationText(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = Math.min(3, units.findIndex((unit) => seconds >= unit[1]) >>> 0);
  let rest = Math.floor(seconds);
  return units.slice(first, first + 2).map(([name, size]) => {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    return amount + ' ' + name;
  }).join(' ');
}

function bytesText(bytes) {
  if (!isNumber(bytes)) return NOTHING;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return threeDigits.format(bytes) + ' ' + units[unit];
}

function settingText(value) {
  if (value === null || value === undefined) return 'not set';
  if (value === '') return '(empty)';
  if (Array.isArray(value)) return value.length > 0 ? value.join(', ') : '(none)';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Counters of the last minute. A restart of the relay, or of the page's link, starts it anew. */
class History {
  constructor() {
    this.startedAt = null;
    this.samples = [];
  }

  add(snapshot) {
    const last = this.samples.at(-1);
    const isNewRun = snapshot.started_at !== this.startedAt;
    if (isNewRun || (last && snapshot.uptime_s < last.uptimeS)) this.samples = [];
    this.startedAt = snapshot.started_at;
    if (last && snapshot.uptime_s === last.uptimeS) this.samples.pop();
    const ranks = new Map(snapshot.ranks.map((rank) => [rank.dp_rank, rank.counters]));
    this.samples.push({ uptimeS: snapshot.uptime_s, ranks });
    while (this.samples[0].uptimeS < snapshot.uptime_s - HISTORY_S) this.samples.shift();
  }

  /** Per second over the last RATE_WINDOW_S; null before two samples. dpRank null = all ranks. */
  rate(counter, dpRank) {
    const last = this.samples.at(-1);
    const first = this.samples.find((sample) => sample.uptimeS >= last.uptimeS - RATE_WINDOW_S);
    return this.between(first, last, counter, dpRank);
  }

  /** One rate a sample of the last minute, oldest first. */
  rates(counter) {
    return this.samples.slice(1).map((sample, before) => ({
      uptimeS: sample.uptimeS,
      perSecond: this.between(this.samples[before], sample, counter, null) ?? 0,
    }));
  }

  between(first, last, counter, dpRank) {
    const seconds = last.uptimeS - first.uptimeS;
    if (!(seconds > 0)) return null;
    let total = 0;
    for (const [rank, counters] of last.ranks) {
      const earlier = first.ranks.get(rank);
      if (!earlier || (dpRank !== null && dpRank !== rank)) continue;
      total += counters[counter] - earlier[counter];
    }
    return Math.max(0, total / seconds);
  }
}
`;
