/** What goes wrong between routers and the relay, and where there is more at once than a router keeps. */
import type { Random } from './random.ts';
import { BAD_FATES, type Fate } from './simulated-socket.ts';
import type { World } from './world.ts';

export const ROUTER_FAULTS = [
  'router loses messages',
  'router lags',
  'router restart',
  'queries fail',
  'answers fail',
  'records vanish',
  'flood',
] as const;
export type RouterFault = (typeof ROUTER_FAULTS)[number];

const FLOOD_BATCHES = 40;
const FLOOD_EVENTS = 40;

export function isRouterFault(kind: string): kind is RouterFault {
  return ROUTER_FAULTS.some((fault) => fault === kind);
}

export function inflictOnRouters(kind: RouterFault, random: Random, world: World): void {
  const { clock, net } = world;
  const router = random.pick(world.routers);
  world.log(`${kind}, ${router.name}`);
  const during = (ms: number, end: () => void): void => void clock.schedule(end, ms);
  const spoil = (way: 'questions' | 'answers', fates: readonly Fate[], ms: number): void => {
    net.fates[way] = fates;
    during(ms, () => {
      net.fates[way] = ['whole'];
    });
  };
  switch (kind) {
    case 'router loses messages':
      router.lossRate = random.pick([0.05, 0.3, 1]);
      during(random.pick([200, 1000, 4000]), () => {
        router.lossRate = 0;
      });
      break;
    case 'router lags':
      world.disturb(3000);
      router.stalledUntilMs = clock.nowMs() + random.pick([100, 1000, 3000]);
      break;
    case 'router restart':
      world.restartRouter(router, random.pick([0, 500, 3000]));
      break;
    case 'queries fail':
      spoil('questions', badFates(random), random.pick([500, 2000, 5000]));
      break;
    case 'answers fail':
      spoil('answers', badFates(random), random.pick([500, 2000, 5000]));
      break;
    case 'records vanish':
      world.registry.loseSources(random.pick([50, 500, 3000]));
      break;
    case 'flood':
      spoil('answers', [random.pick(['slow', 'slow', 'stalled', 'whole'] as const)], 300);
      world.restartRouter(router, 0);
      flood(random, world);
      break;
  }
}

function badFates(random: Random): Fate[] {
  return [...BAD_FATES.filter(() => random.chance(0.5)), random.pick(['whole', 'slow'] as const)];
}

/** More events within an answer than may pass beside it, and than a router keeps meanwhile. */
function flood(random: Random, { clock, parties }: World): void {
  const { engine } = random.pick(parties);
  const waitMs = random.pick([0, 10, 100]);
  const batchMs = random.pick([5, 30]);
  for (let batch = 0; batch < FLOOD_BATCHES; batch++) {
    clock.schedule(
      () => {
        if (engine.isUp) engine.burst(FLOOD_EVENTS);
      },
      waitMs + batch * batchMs,
    );
  }
}
