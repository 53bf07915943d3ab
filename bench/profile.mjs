/** Self time by place in the code, out of the one profile that V8 left in a folder. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { table } from './report.mjs';

const ROWS = 40;
/** Neither work of the relay nor of the collector: the process waits. */
const IDLE = new Set(['(idle)', '(root)']);

export function profileTable(folder) {
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  const profile = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const places = new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const { first, last } = relayingSpan(profile);
  const times = new Map();
  let total = 0;
  for (let at = first; at <= last; at++) {
    const place = places.get(profile.samples[at]);
    if (IDLE.has(place)) continue;
    times.set(place, (times.get(place) ?? 0) + profile.timeDeltas[at]);
    total += profile.timeDeltas[at];
  }
  const rows = [...times].sort(([, a], [, b]) => b - a).slice(0, ROWS);
  const share = (time) => Number(((100 * time) / total).toFixed(1));
  return table(
    ['place', 'ms', '%'],
    rows.map(([place, time]) => [place, Math.round(time / 1000), share(time)]),
  );
}

/** Samples from the first to the last within a batch: what a start costs is not looked for. */
function relayingSpan({ nodes, samples }) {
  const below = new Set();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const collect = (id) => {
    below.add(id);
    for (const child of byId.get(id).children ?? []) collect(child);
  };
  for (const { id, callFrame } of nodes) {
    if (callFrame.url.endsWith('/engine-source.js') && callFrame.functionName === '#relayMessage') {
      collect(id);
    }
  }
  return {
    first: samples.findIndex((id) => below.has(id)),
    last: samples.findLastIndex((id) => below.has(id)),
  };
}

function placeOf({ functionName, url }) {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const parts = url.split('/node_modules/');
  const module =
    parts.length > 1 ? `${parts.at(-1).split('/')[0]}/${basename(url)}` : basename(url);
  return `${name} ${url.startsWith('node:') ? url : module}`;
}
