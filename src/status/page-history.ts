/**
 * The page's script, part 2 of 9: what the last minutes' snapshots said, and rates between them.
 *
 * Bounds   HISTORY_S of snapshots, one every MIN_STEP_S at most; beyond the last FINE_SAMPLES every
 *          second one goes, so that a page open for long draws little more than a new one.
 * Clock    the page's: the relay's uptime has whole seconds, too coarse for a rate.
 */
export const PAGE_HISTORY_SCRIPT: string = `
const RATE_WINDOW_S = 10;
const HISTORY_S = 300;
const MIN_STEP_S = 0.25;
const FINE_SAMPLES = 60;

/** A restart of the relay starts it anew. */
class History {
  constructor() {
    this.startedAt = null;
    this.samples = [];
    this.taken = 0;
  }

  add(snapshot, atS) {
    if (snapshot.started_at !== this.startedAt) this.samples = [];
    this.startedAt = snapshot.started_at;
    const last = this.samples.at(-1);
    if (last && atS - last.atS < MIN_STEP_S) this.samples.pop();
    const ranks = new Map(snapshot.ranks.map((rank) => [rank.dp_rank, rank]));
    this.samples.push({ atS, ranks, rates: new Map(), isCoarse: this.taken++ % 2 === 0 });
    while (this.samples[0].atS < atS - HISTORY_S) this.samples.shift();
    this.thin();
  }

  thin() {
    const place = this.samples.length - 1 - FINE_SAMPLES;
    if (place < 1 || this.samples[place].isCoarse) return;
    this.samples.splice(place, 1);
    // Its rate reaches further back now.
    this.samples[place].rates.clear();
  }

  get nowS() {
    return this.samples.at(-1)?.atS ?? 0;
  }

  /** How far back charts reach: no further than there is something to show. */
  get spanS() {
    const ageS = this.samples.length > 0 ? this.nowS - this.samples[0].atS : 0;
    return [60, 120].find((spanS) => ageS <= spanS) ?? HISTORY_S;
  }

  /** Per second over the last RATE_WINDOW_S; null before two samples. dpRank null = all ranks. */
  rate(counter, dpRank) {
    const last = this.samples.at(-1);
    const first = this.samples.find((sample) => sample.atS >= last.atS - RATE_WINDOW_S);
    return this.between(first, last, counter, dpRank);
  }

  /** One rate a sample, oldest first; each is worked out once. */
  rates(counter, dpRank) {
    const key = counter + ' ' + dpRank;
    return this.samples.slice(1).map((sample, before) => {
      let value = sample.rates.get(key);
      if (value === undefined) {
        value = this.between(this.samples[before], sample, counter, dpRank) ?? 0;
        sample.rates.set(key, value);
      }
      return { atS: sample.atS, value };
    });
  }

  /** What read() finds in a rank, oldest first; samples without it are left out. */
  values(dpRank, read) {
    const values = [];
    for (const { atS, ranks } of this.samples) {
      const rank = ranks.get(dpRank);
      const value = rank ? read(rank) : null;
      if (isNumber(value)) values.push({ atS, value });
    }
    return values;
  }

  between(first, last, counter, dpRank) {
    const seconds = last.atS - first.atS;
    if (!(seconds > 0)) return null;
    let total = 0;
    for (const rank of dpRank === null ? last.ranks.keys() : [dpRank]) {
      const [earlier, later] = [first.ranks.get(rank), last.ranks.get(rank)];
      if (earlier && later) total += later.counters[counter] - earlier.counters[counter];
    }
    return Math.max(0, total / seconds);
  }
}
`;
