/** Makes a failing history short enough to be read: the same seed with less of it. */
import type { FaultKind } from './faults.ts';
import { type PlayOptions, play } from './history.ts';

const SHARES = [0.05, 0.1, 0.2, 0.35, 0.5, 0.75];
const MAX_LINES = 60;

/** The complaints of a seed and a short history that has some; null where all is well. */
export async function failureOf(seed: number): Promise<string | null> {
  const first = await play(seed);
  if (first.complaints.length === 0) return null;
  const options = await shortest(seed, first.setup.faults);
  const { complaints, log: whole, setup } = await play(seed, { ...options, isTraced: true });
  const log = whole.filter((line) => isAbout(line, complaints));
  return [
    `Seed ${seed}: ${first.complaints.join('; ')}`,
    `Again: KVRELAY_SEED=${seed} KVRELAY_RUNS=1 npx vitest run test/simulation/histories`,
    '',
    `The shortest found (${JSON.stringify(options)}): ${complaints.join('; ')}`,
    JSON.stringify({ ...setup, faults: undefined }),
    ...(log.length > MAX_LINES ? [`… ${log.length - MAX_LINES} lines`] : []),
    ...log.slice(-MAX_LINES),
  ].join('\n');
}

async function shortest(seed: number, kinds: readonly FaultKind[]): Promise<PlayOptions> {
  let options: PlayOptions = {};
  const tryTo = async (tried: PlayOptions): Promise<boolean> => {
    const { complaints } = await play(seed, tried);
    if (complaints.length > 0) options = tried;
    return complaints.length > 0;
  };
  for (const share of SHARES) if (await tryTo({ share })) break;
  for (const kind of kinds) {
    await tryTo({ ...options, without: [...(options.without ?? []), kind] });
  }
  for (const share of SHARES) {
    if (share >= (options.share ?? 1) || (await tryTo({ ...options, share }))) break;
  }
  return options;
}

/** Whether a line is about a rank that has complaints, or about none. */
function isAbout(line: string, complaints: readonly string[]): boolean {
  const rank = /rank \d+/.exec(line)?.[0];
  return rank === undefined || complaints.some((complaint) => complaint.includes(rank));
}
