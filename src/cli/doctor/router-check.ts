/** Whether routers are there, as far as it can be seen: none announces itself. */
import { type Check, skipped, warn } from './check.ts';
import type { ProbeContext } from './context.ts';
import type { RegistryView } from './registry.ts';

const START = 'Start the router with the same registry, namespace and event plane';

/** Null view: there is no registry. */
export function routerCheck(view: RegistryView | null, { config }: ProbeContext): Check {
  const name = 'router';
  const { discovery, eventPlane } = config;
  const how =
    eventPlane === 'nats' ? 'NATS does not tell who subscribes' : 'routers announce nothing';
  if (view === null || discovery !== 'file') return skipped(name, `it cannot be seen: ${how}`);
  const sources = view.records?.get('v1/event_sources');
  if (sources === undefined) {
    return warn(name, 'no router has opened the event sources of this registry yet', START);
  }
  const expired = [...sources.values()].filter(({ isAlive }) => !isAlive).length;
  if (expired === 0) return skipped(name, `nothing speaks against it; ${how}`);
  const text = `${expired} event sources have expired, and no router has taken them away`;
  return warn(name, text, START);
}
