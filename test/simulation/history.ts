/** One history: parties and faults drawn from a seed, played to its end, and judged. */
import { type FaultKind, inflict, MAX_FAULT_MS, planFaults } from './faults.ts';
import { Random } from './random.ts';
import { complaintsAboutBelief, complaintsAboutRouters } from './router-verdict.ts';
import { type Setup, setupOf } from './setup.ts';
import { complaintsAbout, complaintsAboutStaleBlocks } from './verdict.ts';
import { VirtualClock } from './virtual-clock.ts';
import { World } from './world.ts';

export interface PlayOptions {
  /** Share of the time of faults that is played. */
  readonly share?: number;
  /** Kinds of faults that are left out. */
  readonly without?: readonly FaultKind[];
  /** Keeps a log, which takes time. */
  readonly isTraced?: boolean;
}

export interface Played {
  readonly setup: Setup;
  readonly complaints: readonly string[];
  /** Empty unless traced. */
  readonly log: readonly string[];
}

/** Without faults, and with engines at work. */
const WORK_ON_MS = 5000;

/**
 * Longest that a router believes in a block that is gone, behind the last fault: to connect again (2 s),
 * to be answered three times (0.8 s each), and the same for the plane (4 s, and its pause of up to 1 s).
 * Where answers do not come, three times their patience comes on top.
 */
const MAX_STALE_MS = 12_000;

/** Longer than any wait of the relay: cool-downs, patience, the plane's resumption. */
const QUIET_MS = 90_000;

/** To ask for the last events, several times if need be. */
const REPAIR_MS = 10_000;

/** Between two looks at what routers believe. */
const LOOK_MS = 1000;

export async function play(seed: number, options: PlayOptions = {}): Promise<Played> {
  const { share = 1, without = [], isTraced = false } = options;
  const random = new Random(seed);
  const drawn = setupOf(random.fork('setup'));
  const faults = drawn.faults.filter((kind) => !without.includes(kind));
  const setup: Setup = { ...drawn, faults };
  const clock = new VirtualClock();
  const log: string[] = [];
  const note = isTraced
    ? (text: string): void => void log.push(`${(clock.nowMs() / 1000).toFixed(4)} ${text}`)
    : (): void => undefined;
  const uninstall = clock.install(random.fork('process'));
  try {
    const world = new World(setup, clock, random.fork('world'), note);
    world.start();
    const planned = planFaults(drawn.faults, drawn.faultyMs, random.fork('faults'));
    for (const fault of planned) {
      const isPlayed = faults.includes(fault.kind) && fault.atMs <= share * drawn.faultyMs;
      if (isPlayed) clock.schedule(() => inflict(fault, world), fault.atMs);
    }
    const complaints = await watch(world, share * drawn.faultyMs);
    complaints.push(...(await settle(world)));
    world.killRelay();
    await clock.run(1000);
    return { setup, complaints, log };
  } finally {
    uninstall();
  }
}

/** Engines that do not work on stop while faults still last: their last batches may be lost. */
async function settle(world: World): Promise<string[]> {
  const { clock, parties, setup } = world;
  const stop = (): void => {
    for (const { engine } of parties) engine.isBusy = false;
  };
  if (!setup.worksOn) stop();
  const believed = await watch(world, MAX_FAULT_MS + (setup.worksOn ? WORK_ON_MS : 0));
  stop();
  await clock.run(MAX_STALE_MS);
  const complaints = [...believed, ...complaintsAboutStaleBlocks(world)];
  await clock.run(QUIET_MS - MAX_STALE_MS);
  complaints.push(...complaintsAbout(world));
  // A router that has lost the last message of all learns of it by the next one.
  for (const { engine } of parties) engine.storeNew();
  await clock.run(REPAIR_MS);
  return [...complaints, ...(await complaintsAboutRouters(world))];
}

/** The world goes on for so long; what routers believe meanwhile is looked at now and then. */
async function watch(world: World, ms: number): Promise<string[]> {
  const endMs = world.clock.nowMs() + ms;
  for (let leftMs = ms; leftMs > 0; leftMs = endMs - world.clock.nowMs()) {
    await world.clock.run(Math.min(leftMs, LOOK_MS));
    const complaints = complaintsAboutBelief(world);
    if (complaints.length > 0) return complaints;
  }
  return [];
}
