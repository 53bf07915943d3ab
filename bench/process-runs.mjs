/** The parts of `npm run bench` that need other processes: each measures, prints its table and gives its figures. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { disturbanceTable, measureDisturbances } from './disturbance.mjs';
import { measureStream } from './end-to-end.mjs';
import { latencyTable, measureLatency } from './latency.mjs';
import { profileTable } from './profile.mjs';
import { ratiosOf, ratiosTable, runsTable } from './report.mjs';
import { measureStarts, startsTable } from './start-up.mjs';

export class ProcessRuns {
  #bed;
  #say;

  /** `bed` is the plane, its server, and the Python of Dynamo or null; `say` is told of each run. */
  constructor(bed, say) {
    this.#bed = bed;
    this.#say = say;
  }

  async endToEnd(streams, pairs) {
    const measured = [];
    for (const name of streams) {
      const bed = { ...this.#bed, pairs };
      const { runs, ...rest } = await measureStream(name, bed, (_, { relay, seconds }) => {
        this.#say(`${name}: ${relay} ${seconds.toFixed(2)} s`);
      });
      const others = ['dynamo', 'floor'].map((other) => [other, ratiosOf(runs, other)]);
      const ratios = Object.fromEntries(others.filter(([, ratio]) => ratio !== null));
      measured.push({ ...rest, ratios, runs });
    }
    const title = `End to end, ${this.#bed.plane} plane, medians of ${pairs}`;
    if (measured.length > 0) print(title, runsTable(measured), ratiosTable(measured));
    return measured;
  }

  /** Self time of kvrelay's functions in one more run of each stream. */
  async profiles(streams, profileFolder) {
    for (const name of streams) {
      const folder = join(profileFolder, name);
      rmSync(folder, { recursive: true, force: true });
      const nodeFlags = ['--cpu-prof', '--cpu-prof-dir', folder];
      const bed = { ...this.#bed, pairs: 1, python: null, nodeFlags };
      await measureStream(name, bed, () => undefined);
      const title = `kvrelay on ${name}, self time without idle; whole profile in ${folder}`;
      print(title, profileTable(folder));
    }
  }

  async latency(streams, pairs) {
    const { plane } = this.#bed;
    const beds = [{ ...this.#bed, pairs }];
    if (plane === 'nats') beds.push({ ...this.#bed, pairs, plane: 'zmq', python: null });
    const measured = [];
    for (const bed of beds) {
      for (const name of streams) {
        const said = ({ relay, share, p50Ms, p99Ms }) =>
          this.#say(
            `${name}, ${bed.plane}, ${share * 100} %: ${relay} ${p50Ms.toFixed(2)} ms, 99 % within ${p99Ms.toFixed(2)} ms`,
          );
        measured.push(await measureLatency(name, bed, said));
      }
    }
    print(`Latency, medians of ${pairs}`, latencyTable(measured));
    return measured;
  }

  async disturbances(pairs) {
    const runs = await measureDisturbances({ ...this.#bed, pairs }, ({ disturbance, seconds }) => {
      this.#say(`disturbance, ${disturbance}: ${seconds.toFixed(2)} s`);
    });
    print(`Under disturbance, decode, NATS plane, medians of ${pairs}`, disturbanceTable(runs));
    return runs;
  }

  async starts(pairs) {
    const runs = await measureStarts({ ...this.#bed, pairs }, ({ relay, readyMs }) => {
      this.#say(`start-up: ${relay} ${Math.round(readyMs)} ms`);
    });
    print(`Start-up, NATS plane, medians of ${pairs}`, startsTable(runs));
    return runs;
  }
}

function print(title, ...tables) {
  process.stdout.write(`\n${title}\n\n${tables.join('\n\n')}\n`);
}
