/**
 * Degraded codes: the fixed list of conditions under which a router may be told too much or too
 * little, each with what it means and what ends it.
 */

export const DEGRADED_CODES = [
  'engine_disconnected',
  'engine_gap',
  'recovered_with_loss',
  'event_dropped',
  'block_size_mismatch',
  'filtered_only',
  'plane_disconnected',
  'outbox_dropping',
  'slow_subscriber',
  'ambiguous_source',
  'worker_missing',
  'worker_ambiguous',
  'discovery_unavailable',
  'advertises_loopback',
  'tracking_full',
  'engine_unsupported',
  'store_suspect',
  'lmcache_disconnected',
  'lmcache_events_lost',
  'lmcache_read_failures',
] as const;
export type DegradedCode = (typeof DEGRADED_CODES)[number];

/** As it stands in `/api/status`. */
export interface DegradedNotice {
  readonly code: DegradedCode;
  readonly message: string;
  readonly remedy: string;
}

const NOTICES: Readonly<Record<DegradedCode, readonly [message: string, remedy: string]>> = {
  engine_disconnected: [
    'No connection to the event socket of the engine',
    'Check that the engine runs with KV events enabled and publishes on --engine-endpoint',
  ],
  engine_gap: [
    'Batches of the engine are missing and were not replayed',
    "Give --replay-endpoint, or look for what held the link up; the engine's next clear ends this state",
  ],
  recovered_with_loss: [
    'Batches of the engine are lost: no replay brought them back',
    "Enlarge the engine's replay buffer (buffer_steps); the engine's next clear ends this state",
  ],
  event_dropped: [
    'Events or whole messages could not be read and were dropped, removes perhaps among them',
    "Check that --engine names this engine and version; the engine's next clear ends this state",
  ],
  block_size_mismatch: [
    'Stores of the engine do not have the configured block size and are not published',
    'Set --block-size to the tokens per block in the events of the engine',
  ],
  filtered_only: [
    'Events arrive, but every one of them is filtered',
    'Find the reason in filtered_by_reason; check --engine and what the engine is set to publish',
  ],
  plane_disconnected: [
    'No connection to the event plane: messages wait in the outbox',
    'Check that the server runs and that --nats-server names it',
  ],
  outbox_dropping: [
    'The outbox is full: its oldest messages are dropped, routers never see them',
    'Restore the connection to the event plane, or raise --outbox-bytes',
  ],
  slow_subscriber: [
    'A router reads the ZMQ plane too slowly and loses messages',
    'Check load and network of that router, and restart it: it has missed events',
  ],
  ambiguous_source: [
    'Another live source announces events for the same worker and rank',
    'Stop the other publisher; --on-ambiguous decides what this relay does meanwhile',
  ],
  worker_missing: [
    'Discovery has no worker at this endpoint, so nothing is published',
    'Start the worker, correct --namespace, --component and --endpoint, or set --worker-id',
  ],
  worker_ambiguous: [
    'Discovery has several workers at this endpoint, so nothing is published',
    'Set --worker-id to the worker beside this relay',
  ],
  discovery_unavailable: [
    'The discovery backend cannot be reached or written',
    'Check that it runs and that --discovery-dir or --etcd-endpoints names it',
  ],
  advertises_loopback: [
    'Routers are given a loopback address, which only routers on this host can reach',
    'Bind the wildcard, and set DYN_EVENT_PLANE_HOST and DYN_TCP_RPC_HOST to a reachable address',
  ],
  tracking_full: [
    'The block table is full: removes of untracked blocks pass uncounted',
    'Raise --max-tracked-blocks above the number of blocks the engine can hold',
  ],
  engine_unsupported: [
    'The engine publishes in a form this relay does not understand',
    'Check --engine against the engine and its version',
  ],
  store_suspect: [
    'A store source may have missed changes, so some of its placements may be wrong',
    'Check the endpoints of the store; its next reconciliation ends this state',
  ],
  lmcache_disconnected: [
    "No connection to LMCache's bridge",
    'Check that LMCache was started with the bridge and that --lmcache-bridge names its endpoint',
  ],
  lmcache_events_lost: [
    'Events of LMCache were lost within the last 5 minutes: its metrics here are too low',
    'Give --lmcache-replay, or raise KVRELAY_BRIDGE_QUEUE_EVENTS and --event-bus-queue-size of LMCache',
  ],
  lmcache_read_failures: [
    'Reads from L1 fail that a lookup had promised',
    'Look for evictions between lookup and read: L1 may be too small for the load',
  ],
};

/** `detail` is what only the moment knows, for example the workers to choose from. */
export function describeDegraded(code: DegradedCode, detail?: string): DegradedNotice {
  const [message, remedy] = NOTICES[code];
  return { code, message: detail === undefined ? message : `${message} (${detail})`, remedy };
}
