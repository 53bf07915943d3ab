/** What `kvrelay doctor` finds: one check each, under a fixed name. */

/** In the order they are shown. */
export const CHECK_NAMES = [
  'settings',
  'node_version',
  'clock',
  'engine_reachable',
  'engine_publisher',
  'engine_messages',
  'engine_topic',
  'engine_events',
  'engine_rank',
  'engine_filter',
  'block_size',
  'replay_answer',
  'replay_depth',
  'engine_metrics',
  'http_address',
  'mooncake_store',
  'mooncake_master',
  'lmcache_stream',
  'lmcache_bridge',
  'lmcache_endpoint',
  'lmcache_forward',
  'plane_address',
  'plane_routers',
  'plane_broker',
  'nats_server',
  'nats_max_payload',
  'discovery_backend',
  'discovery_records',
  'worker',
  'worker_card',
  'ambiguous_source',
  'router',
] as const;
export type CheckName = (typeof CHECK_NAMES)[number];

export type CheckState = 'ok' | 'warn' | 'fail' | 'skipped';

export interface Check {
  readonly name: CheckName;
  readonly state: CheckState;
  /** The rank it is about, where several are checked. */
  readonly rank: number | null;
  /** What was found; where it is skipped, why. */
  readonly text: string;
  /** What to do about it; null where there is nothing to do. */
  readonly remedy: string | null;
}

export function ok(name: CheckName, text: string): Check {
  return { name, state: 'ok', rank: null, text, remedy: null };
}

export function skipped(name: CheckName, reason: string): Check {
  return { name, state: 'skipped', rank: null, text: reason, remedy: null };
}

/** May be meant so, or pass by itself. */
export function warn(name: CheckName, text: string, remedy: string): Check {
  return { name, state: 'warn', rank: null, text, remedy };
}

/** Keeps the set-up from working. */
export function fail(name: CheckName, text: string, remedy: string): Check {
  return { name, state: 'fail', rank: null, text, remedy };
}

export function inOrder(checks: readonly Check[]): Check[] {
  const place = ({ name }: Check): number => CHECK_NAMES.indexOf(name);
  return [...checks].sort((a, b) => place(a) - place(b) || (a.rank ?? 0) - (b.rank ?? 0));
}
