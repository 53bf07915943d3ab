/** What goes wrong in a history: its kinds, and what one of them does to the world. */
import type { Random } from './random.ts';
import {
  inflictOnRouters,
  isRouterFault,
  ROUTER_FAULTS,
  type RouterFault,
} from './router-faults.ts';
import type { World } from './world.ts';

const PROCESS_FAULTS = [
  'lost batches',
  'link stall',
  'link break',
  'link outage',
  'engine restart',
  'engine runs ahead',
  'unencodable',
  'replay outage',
  'relay restart',
  'plane break',
  'plane outage',
  'plane stall',
  'subscriber restart',
] as const;
export type FaultKind = (typeof PROCESS_FAULTS)[number] | RouterFault;
export const FAULT_KINDS: readonly FaultKind[] = [...PROCESS_FAULTS, ...ROUTER_FAULTS];

/** Kinds that come alone would be rare: each comes about this often in the time of faults. */
const PER_HISTORY = 2.5;

/** Faults that come while the relay still learns what there is. */
const EARLY_SHARE = 0.2;
const EARLY_MS = 300;

export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly random: Random;
}

export function planFaults(kinds: readonly FaultKind[], faultyMs: number, random: Random): Fault[] {
  return kinds.flatMap((kind) => {
    const own = random.fork(kind);
    const count = 1 + Math.floor(own.next() * 2 * (PER_HISTORY - 1) + 0.5);
    return Array.from({ length: count }, (_, index) => ({
      kind,
      atMs: own.next() * (own.chance(EARLY_SHARE) ? EARLY_MS : faultyMs),
      random: own.fork(String(index)),
    }));
  });
}

/** Most that a fault lasts. */
export const MAX_FAULT_MS = 5000;

export function inflict({ kind, random }: Fault, world: World): void {
  const { clock } = world;
  const party = random.pick(world.parties);
  const { engine, link } = party;
  if (isRouterFault(kind)) {
    inflictOnRouters(kind, random, world);
    return;
  }
  const isOfEngine = !/relay|plane|subscriber/.test(kind);
  world.log(isOfEngine && world.parties.length > 1 ? `${kind}, rank ${party.ranks[0]}` : kind);
  switch (kind) {
    case 'lost batches':
      link.dropRate = random.pick([0.1, 0.5, 1]);
      clock.schedule(
        () => {
          link.dropRate = 0;
        },
        random.pick([50, 500, 2000]),
      );
      break;
    case 'link stall':
      link.stall(random.pick([50, 500, 3000]));
      break;
    case 'link break':
      link.cut();
      break;
    case 'link outage':
      link.blockedUntilMs = clock.nowMs() + random.pick([500, 5000]);
      link.cut();
      break;
    case 'engine restart':
      world.restartEngine(party, random.pick([0, 200, 3000]), 0);
      break;
    case 'engine runs ahead':
      world.restartEngine(party, random.pick([0, 200]), random.between(1, 80));
      break;
    case 'unencodable':
      engine.unencodableRate = 0.3;
      clock.schedule(
        () => {
          engine.unencodableRate = 0;
        },
        random.pick([100, 1000]),
      );
      break;
    case 'replay outage':
      world.blockReplays(party, random.pick([500, MAX_FAULT_MS]));
      break;
    case 'relay restart':
      world.restartRelay(random.pick([0, 500, 3000]));
      break;
    case 'plane break':
      world.breakPlane(random.pick([0, 30, 1000]), 0);
      break;
    case 'plane outage':
      world.breakPlane(random.pick([0, 1000]), random.pick([1000, MAX_FAULT_MS]));
      break;
    case 'plane stall':
      world.disturb(2000);
      world.process?.nats.stall(random.pick([50, 2000]));
      break;
    case 'subscriber restart':
      world.subscriber.restart();
      break;
  }
}
